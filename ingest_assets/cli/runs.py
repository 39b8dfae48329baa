"""Running stages through Dagster, batch after batch, and adding up what came out."""

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dagster as dg
from dagster._core.events import RunFailureReason

from ingest_assets.cli.interrupts import PRESSES
from ingest_assets.defs.automation import run_tags
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.completeness import StageState, batch_states
from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.healing import mended
from ingest_assets.defs.home import Home
from ingest_assets.defs.instance import apply_pools, open_instance
from ingest_assets.defs.jobs import INGEST_ALL
from ingest_assets.defs.orphans import settle_leases, settle_orphans
from ingest_assets.defs.partitions import batches
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.defs.sets import cut_over, families
from ingest_assets.defs.staged import COUNTS
from ingest_assets.model.errors import StageError
from ingest_assets.storage.sets import SetMark

_CLI_TAGS = {
    # A person is at this command: what they interrupt must not be started again by a daemon.
    "dagster/max_retries": "0",
    # By this the web UI counts the run to its job.
    ".dagster/repository": "__repository__@ingest_assets.definitions",
}
_MOST_RUNS_IN_COMPANY = 3
_OUR_ERROR = re.compile(r"^ingest_assets\.[\w.]+: ")


@dataclass(slots=True)
class StageTotals:
    """What one stage did over all batches of this command: `scheduled = succeeded + failed + cancelled`."""

    scheduled: int = 0
    skipped: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    retries: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class RunReport:
    """What a command did: totals per stage, and what stopped a batch.

    A batch that was run several times counts as skipped what was so the first time, and fails by its last.
    `took_over` has a line for each family that another set serves now than before.
    """

    stages: dict[str, StageTotals] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    complete_before: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    errors_of: dict[str, list[StageError]] = field(default_factory=dict)
    served_before: dict[str, SetMark] = field(default_factory=dict)
    took_over: dict[str, str] = field(default_factory=dict)
    wall_seconds: float = 0.0

    @property
    def errors(self) -> list[StageError]:
        """Of all batches."""
        return [error for errors in self.errors_of.values() for error in errors]

    def knows(self, batch: str) -> bool:
        """True when the batch was looked at before."""
        return batch in self.ran or batch in self.complete_before


def run_batches(
    home: Home,
    stages: Sequence[str],
    config: dict[str, Any],
    *,
    reason: str,
    progress: str = "log",
    resource: HomeResource | None = None,
    retry: Mapping[str, Sequence[str]] | None = None,
    only: Collection[str] | None = None,
    report: RunReport | None = None,
) -> RunReport:
    """Run every batch that is not complete; with `force` or without `resume`, every batch.

    `resource` is for a home whose settings are not its own: steps open the home through it. `retry` are the
    batches to run, complete or not and no others, each with the failed documents to try again. `only` are the
    batches to look at. A `report` of the same stages is added to.
    """
    stages = [stage for stage in stages if stage in home.graph]
    report = report or RunReport(stages={stage: StageTotals() for stage in stages})
    runs_all = bool(config.get("force")) or config.get("resume") is False
    started = time.monotonic()
    answer = _answer_to_a_press(home, stages)
    with PRESSES.answered(answer), open_instance(home.layout, for_command=True) as instance:
        settle_orphans(instance)
        settle_leases(home)
        apply_pools(instance, home.settings.pools)
        opened = resource or HomeResource(path=str(home.layout.home))
        job = build_definitions(opened, progress=progress).resolve_job_def(INGEST_ALL)
        keys = list(home.ledger.batches() if retry is None else retry)
        keys = [key for key in keys if only is None or key in only]
        instance.add_dynamic_partitions(batches.name or "", keys)
        report.served_before = _serving(home, stages) | report.served_before
        mended(home, partial(_settle_sets, home, stages))
        for batch, is_again in _in_turn(home, keys):
            states = mended(home, partial(batch_states, home, batch, stages, due_at=time.time()))
            runs_anyway = (runs_all or retry is not None) and not is_again
            if not runs_anyway and all(state.is_complete() for state in states):
                _add_complete(batch, states, report)
                continue
            for _ in range(_MOST_RUNS_IN_COMPANY):
                result = _run(
                    job,
                    instance=instance,
                    partition_key=batch,
                    asset_selection=[GRAPH[stage].asset_key for stage in stages],
                    run_config=_run_config(home, stages, _with_retry(config, retry, batch)),
                    tags=run_tags(home, batch, reason) | _CLI_TAGS,
                )
                _add(home, stages, batch, result, report)
                if result.success or runs_all or not _had_company(instance, batch, result.run_id):
                    break
        _settle_sets(home, stages)
        report.took_over = _took_over(report.served_before, _serving(home, stages))
    report.wall_seconds += time.monotonic() - started
    return report


def _settle_sets(home: Home, stages: Sequence[str]) -> None:
    """What a killed run left of a change of sets, and sets that were whole before."""
    for stage in families(home, stages):
        cut_over(home, stage, lambda _line: None)


def _serving(home: Home, stages: Sequence[str]) -> dict[str, SetMark]:
    """The set of each family that readers find rows of now."""
    found = {stage: home.family(stage).served() for stage in families(home, stages)}
    return {stage: mark for stage, mark in found.items() if mark is not None}


def _took_over(before: Mapping[str, SetMark], now: Mapping[str, SetMark]) -> dict[str, str]:
    """For people, of each family whose new set has taken the place of another."""
    return {
        stage: f"{stage}: {new.name_beside(old)} serves from now on (was {old.name_beside(new)})."
        for stage, old in before.items()
        if (new := now.get(stage)) is not None and new.set != old.set
    }


def run_job(home: Home, name: str, resource: HomeResource | None = None) -> str | None:
    """Run a job that is of no batch; gives why it failed, if it did."""
    with open_instance(home.layout, for_command=True) as instance:
        opened = resource or HomeResource(path=str(home.layout.home))
        job = build_definitions(opened).resolve_job_def(name)
        result = _run(job, instance=instance, run_config=_run_config(home, (), {}), tags=_CLI_TAGS)
        return None if result.success else _why(result)


def _had_company(instance: dg.DagsterInstance, batch: str, run_id: str) -> bool:
    """True when another run was at the batch at the same time.

    A check looks at all tables of a batch, and another run may just have written one and not yet the next.
    """
    of_batch = dg.RunsFilter(tags={"dagster/partition": batch})
    records = {record.dagster_run.run_id: record for record in instance.get_run_records(of_batch)}
    began_at = records.pop(run_id).start_time or 0.0
    others = [record for record in records.values() if record.start_time is not None]
    return any(other.end_time is None or other.end_time >= began_at for other in others)


def _in_turn(home: Home, keys: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each batch once, and again when a run of another one has changed how its documents stand."""
    seen: dict[str, int] = {}
    while behind := [key for key in keys if home.ledger.batches().get(key, 0) > seen.get(key, -1)]:
        for batch in behind:
            is_again = batch in seen
            seen[batch] = home.ledger.batches().get(batch, 0)
            yield batch, is_again


def _run(job: dg.JobDefinition, **arguments: Any) -> dg.ExecuteInProcessResult:
    """One run in this process; an interrupt is a `KeyboardInterrupt`, whatever Dagster makes of it."""
    if PRESSES.count:  # Dagster forgets a press that comes while it closes a run
        raise KeyboardInterrupt
    try:
        result = job.execute_in_process(raise_on_error=False, **arguments)
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None
    if _was_interrupted(result):
        raise KeyboardInterrupt
    return result


def _run_config(home: Home, stages: Sequence[str], config: dict[str, Any]) -> dict[str, Any]:
    """Options for each stage; Dagster's events go to the UI, not over this command's own output."""
    ops = {_step(home, stage): {"config": config} for stage in stages if config}
    return {"ops": ops, "loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def _with_retry(
    config: dict[str, Any], retry: Mapping[str, Sequence[str]] | None, batch: str
) -> dict[str, Any]:
    return config if retry is None else {**config, "retry": list(retry[batch])}


def _step(home: Home, stage: str) -> str:
    """Dagster's name for the step of a stage."""
    return home.serving(stage).replace("/", "__")


def _answer_to_a_press(home: Home, stages: Sequence[str]) -> str:
    grace_s = max(home.options(stage).grace_s for stage in stages)
    return f"ingest: stopping; running documents get up to {grace_s:g} s, Ctrl-C again ends at once"


def _add_complete(batch: str, states: Sequence[StageState], report: RunReport) -> None:
    if report.knows(batch):
        return
    report.complete_before.append(batch)
    for state in states:
        report.stages[state.stage].skipped += state.done + len(state.failed)


def _add(home: Home, stages: Sequence[str], batch: str, result: Any, report: RunReport) -> None:
    counts = set(COUNTS) - ({"skipped"} if report.knows(batch) else set())
    if batch not in report.ran:
        report.ran.append(batch)
    by_step = {_step(home, stage): report.stages[stage] for stage in stages}
    errors = report.errors_of[batch] = []
    for step, metadata in _stage_metadata(result):
        totals = by_step[step]
        for name in counts:
            setattr(totals, name, getattr(totals, name) + metadata[name].value)
        totals.seconds += metadata["wall_seconds"].value
        errors += [StageError.model_validate(error) for error in metadata["errors"].value]
    if result.success:
        report.broken.pop(batch, None)
    else:
        report.broken[batch] = _why(result)


def _stage_metadata(result: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The numbers of each stage, by its step: of those that finished, and of those that were stopped."""
    for event in result.get_asset_materialization_events():
        yield event.step_key, event.step_materialization_data.materialization.metadata
    for event in result.all_events:
        failure = event.step_failure_data.user_failure_data if event.is_step_failure else None
        if failure is not None and "scheduled" in failure.metadata:
            yield event.step_key, failure.metadata


def _was_interrupted(result: Any) -> bool:
    ends = [event for event in result.all_events if event.event_type_value == "PIPELINE_FAILURE"]
    unexpected = RunFailureReason.UNEXPECTED_TERMINATION
    return any(end.job_failure_data.failure_reason == unexpected for end in ends)


def _why(result: Any) -> str:
    """The reason a person can use: a failed blocking check, or the error under Dagster's wrapping."""
    for check in result.get_asset_check_evaluations():
        if not check.passed and check.blocking:
            first = check.metadata["first"].value if "first" in check.metadata else ""
            return f"check {check.check_name} of {check.asset_key.to_user_string()} failed: {first}"
    for event in result.all_events:
        if event.is_failure and event.event_specific_data is not None:
            error = getattr(event.event_specific_data, "error", None)
            failure = getattr(event.event_specific_data, "user_failure_data", None)
            if failure is not None and failure.description:
                return str(failure.description)
            if error is not None:
                return _OUR_ERROR.sub("", str((error.cause or error).message).strip())
    return "the run failed; its events in the web UI say why"
