"""Which items of a plan must run, and why the others need not."""

from ingest_assets.model.items import Plan, WorkItem
from ingest_assets.model.options import StageOptions
from ingest_assets.model.outcomes import StageOutcome, Verdict


def verdict_of(item: WorkItem, options: StageOptions) -> Verdict:
    """Resume skips what is current and what is known to fail; `force` and `resume = false` run everything.

    What is on hold never runs: a person chose others.
    """
    if item.on_hold:
        return "skip" if item.satisfies() else "known_failure"
    if options.force or not options.resume:
        return "run"
    if item.satisfies():
        return "skip"
    return "known_failure" if item.is_known_to_fail() else "run"


def dry_run(plan: Plan, options: StageOptions, workers: int, workers_reason: str) -> StageOutcome:
    """What would happen; touches nothing. Nothing is scheduled, so the numbers add up."""
    verdicts = {item.item_id: verdict_of(item, options) for item in plan.items}
    known = sum(verdict == "known_failure" for verdict in verdicts.values())
    return StageOutcome(
        stage=plan.stage,
        policy=options.policy,
        workers=workers,
        workers_reason=workers_reason,
        skipped=known + sum(verdict == "skip" for verdict in verdicts.values()),
        known_failures=known,
        verdicts=verdicts,
    )
