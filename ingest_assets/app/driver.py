"""The steps of a run, in order: refresh, due batches, run one batch, finish.

The command line refreshes and runs every batch with work in its own process, one after another. The sensor
refreshes and requests Dagster runs for the batches that changed; the nightly schedule requests them for every
batch with work. A run started in the web UI scans the folders first if it contains `documents`, and updates
the corpus statistics if no other run is active.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from ingest_assets.app.acquire import acquire_batch, expire_dead_leases
from ingest_assets.app.execution import RunOptions, check_run_options
from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home
from ingest_assets.app.model_switch import (
    PendingSwitch,
    cut_over,
    families,
    prune_disabled_families,
    prune_other_sets,
    serving_sets,
)
from ingest_assets.app.plan import StageState, batch_states, has_work
from ingest_assets.app.repair import quarantine_damaged, quarantining_damage
from ingest_assets.app.stage_run import Staged
from ingest_assets.core.errors import ConfigError, StageError
from ingest_assets.core.identity import canonical_json, sha256_text
from ingest_assets.intake.folders.scan import ScanReport
from ingest_assets.intake.queue.catalogue import SOURCE
from ingest_assets.intake.queue.metrics import QueueMetrics
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.stages.lexical_stats import are_current, refresh_stats, stats_numbers, stats_path
from ingest_assets.storage.model_sets import SetState
from ingest_assets.storage.table import CommitResult, commit

COUNTS = ("scheduled", "skipped", "known_failures", "succeeded", "failed", "cancelled", "retries")
STATISTICS = "lexical_stats"
# The tag that says why a run was requested; runs started in the web UI have none.
REASON_TAG = "ingest/reason"
# The stage whose tables the corpus statistics are computed from.
COUNTED_STAGE = LexicalStage.name
# Maximum attempts at a batch while other runs work on it; if the last one fails too, they are not the cause.
_MAX_ATTEMPTS = 3


# Refresh: update the ledger.


def require_ready(home: Home, stages: Sequence[str], options: RunOptions) -> None:
    """Raise `ConfigError` for settings or options that a run would reject, before anything starts."""
    home.validate()
    check_run_options(home, stages, options)


def record_queue_depth(home: Home, now: float) -> None:
    """Record the queue depth at this time, for `ingest queue stats` and telemetry."""
    QueueMetrics(home.ledger.database).depth(home.queue.stats(now))


def has_no_documents(home: Home) -> bool:
    """True for a home that watches no folder, has nothing queued and has no documents from before."""
    return not home.sources() and not home.queue.find(Filter(), limit=1) and not home.ledger.batches()


def require_documents(home: Home) -> None:
    """Raise `ConfigError` for a home without documents: no folder is watched and the queue is empty."""
    is_new = not home.read_only and not home.layout.ledger.is_file()
    if has_no_documents(replace(home, creates_ledger=False) if is_new else home):  # a typo makes no home
        raise ConfigError(
            f"{home.layout.home} watches no folder and its queue is empty. Add a folder with --input or "
            "[sources] in ingest.toml, or a list with `ingest queue import`."
        )


def refresh(home: Home, budget_seconds: float = float("inf"), settle_seconds: float = 0.0) -> ScanReport:
    """Update the ledger: end leases of dead workers, scan the folders, queue what needs a refresh."""
    expire_dead_leases(home)
    report = home.scan(budget_seconds, settle_seconds)
    if (days := home.settings.queue.refresh_days) > 0:
        home.queue.refresh(time.time(), older_than_s=days * 86_400)
    return report


# Due batches.


@dataclass(frozen=True, slots=True)
class Due:
    """A batch with work to do now.

    `key` is Dagster's run key: new for each change, and each time the batch becomes due again.
    """

    batch: str
    reason: str
    key: str


def due_batches(home: Home, now: float, *, seen: int | None = None, tick: str = "") -> list[Due]:
    """Return the batches with work to do, ordered by batch key.

    With `seen`, only batches that changed after that revision and batches whose artifacts can be retried
    now. `tick` becomes part of the keys of unchanged batches.
    """
    revisions = home.ledger.batches()
    retries = {} if seen is None else home.queue.due_batches(now)
    due = []
    for batch, revision in revisions.items():
        key = f"{batch}@{revision}"
        if seen is None and has_work(home, batch, revision, now):
            due.append(Due(batch, "reconcile", f"{key}@{tick}"))
        elif seen is not None and revision > seen and has_work(home, batch, revision, now):
            due.append(Due(batch, "changed", key))
        elif seen is not None and revision <= seen and batch in retries:
            # A retried artifact gets a new time, so the key is new whenever the batch becomes due.
            due.append(Due(batch, "due again", f"{key}@{retries[batch][1]:.3f}"))
    return due


def run_tags(home: Home, batch: str, reason: str) -> dict[str, str]:
    """Return the tags by which Dagster's run queue can limit runs."""
    sources = {document.source for document in home.ledger.documents(batch=batch)}
    sources |= {SOURCE} if home.queue.find(Filter(batch=batch), limit=1) else set()
    return {"ingest/batch": batch, REASON_TAG: reason, "ingest/source": ",".join(sorted(sources))}


# Run one batch: acquire its queued artifacts, then commit what each step has staged.


def start_batch(
    home: Home, batch: str, reason: str | None, log: Callable[[str], None], say: Callable[[str], None]
) -> dict[str, Any]:
    """Acquire the batch's queued artifacts before its first stage, and return the counts to show.

    A run without a reason was started in the web UI, so the folders are scanned first.
    """
    if reason is None:
        refresh(home)
    return acquire_batch(home, batch, log, say)


def commit_staged(
    home: Home, staged: Staged, say: Callable[[str], None]
) -> tuple[CommitResult, PendingSwitch | None]:
    """Commit a stage's rows of a batch atomically, and switch to the new model set if it is complete.

    Return the commit, and the pending switch if the new set is not active yet.
    """
    stage, batch = staged.outcome.stage, staged.commit.batch
    has_sets = GRAPH[stage].has_sets
    try:
        with quarantining_damage(home):
            committed = commit(home.layout, staged.commit)
            if has_sets:
                prune_other_sets(home, stage, batch)
            prune_disabled_families(home, stage, batch)
    finally:
        staged.release()
    if not has_sets:
        return committed, None
    waiting = cut_over(home, stage, say)
    # After a switch, the set is no longer in the folder it was committed to.
    return replace(committed, path=home.layout.table(home.asset(stage), batch)), waiting


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one run of a batch: numbers by stage, failed documents, and why it stopped, if it did.

    `ran_concurrently` means that another run worked on the batch: a check may have read one of that run's
    tables before the next was written.
    """

    numbers: Mapping[str, Mapping[str, float]]
    errors: Sequence[StageError] = ()
    broken: str | None = None
    ran_concurrently: bool = False


class Executor(Protocol):
    """Runs batches, and the corpus statistics, in this process."""

    def run(self, batch: str, stages: Sequence[str], options: Mapping[str, Any], reason: str) -> BatchResult:
        """Run these stages of a batch."""
        ...

    def make_statistics(self) -> str | None:
        """Compute the corpus statistics; return the reason if that fails."""
        ...


@dataclass(slots=True)
class StageTotals:
    """Counts of one stage over all batches of a command: `scheduled = succeeded + failed + cancelled`.

    `known_failures` are the skipped documents that failed before.
    """

    scheduled: int = 0
    skipped: int = 0
    known_failures: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    retries: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class RunReport:
    """What a command did: totals per stage, and why a batch stopped.

    For a batch that ran several times, skipped documents are those of its first run and failures those of
    its last. `took_over` has a line for each family whose serving set changed.
    """

    stages: dict[str, StageTotals] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    complete_before: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    errors_of: dict[str, list[StageError]] = field(default_factory=dict)
    served_before: dict[str, SetState] = field(default_factory=dict)
    took_over: dict[str, str] = field(default_factory=dict)
    wall_seconds: float = 0.0

    @property
    def errors(self) -> list[StageError]:
        """The errors of all batches."""
        return [error for errors in self.errors_of.values() for error in errors]

    def has_seen(self, batch: str) -> bool:
        """True when the batch is already part of this report."""
        return batch in self.ran or batch in self.complete_before

    def add_complete(self, batch: str, states: Sequence[StageState]) -> None:
        """Add a batch with nothing to do."""
        if not self.has_seen(batch):
            self.complete_before.append(batch)
            for state in states:
                self.stages[state.stage].skipped += len(state.done) + len(state.failed)
                self.stages[state.stage].known_failures += len(state.failed)

    def add_run(self, batch: str, result: BatchResult) -> None:
        """Add a run of a batch."""
        counts = set(COUNTS) - ({"skipped", "known_failures"} if self.has_seen(batch) else set())
        if batch not in self.ran:
            self.ran.append(batch)
        for stage, numbers in result.numbers.items():
            totals = self.stages[stage]
            for name in counts:
                setattr(totals, name, getattr(totals, name) + numbers[name])
            totals.seconds += numbers["wall_seconds"]
        self.errors_of[batch] = list(result.errors)
        self.broken.pop(batch, None)
        if result.broken is not None:
            self.broken[batch] = result.broken


def run_batches(
    home: Home,
    stages: Sequence[str],
    options: Mapping[str, Any],
    executor: Executor,
    *,
    reason: str,
    retry: Mapping[str, Sequence[str]] | None = None,
    only: Collection[str] | None = None,
    report: RunReport | None = None,
) -> RunReport:
    """Run every batch that is not complete; with `force` or without `resume`, run every batch.

    `retry` maps the batches to run, complete or not, to the failed documents to retry. `only` restricts the
    batches to consider. Results are added to `report`, if given.
    """
    stages = [stage for stage in stages if stage in home.graph]
    report = report or RunReport(stages={stage: StageTotals() for stage in stages})
    runs_all = bool(options.get("force")) or options.get("resume") is False
    started = time.monotonic()
    keys = [key for key in (home.ledger.batches() if retry is None else retry) if only is None or key in only]
    report.served_before = serving_sets(home, stages) | report.served_before
    quarantine_damaged(home, lambda: switch_complete_sets(home, stages))
    for batch, is_repeat in _iterate_batches(home, keys):
        runs_anyway = (runs_all or retry is not None) and not is_repeat
        has_tables = all(home.layout.table(home.asset(stage), batch).is_file() for stage in stages)
        if has_tables and not runs_anyway:  # a missing table means work: no need to plan
            states = quarantine_damaged(home, partial(batch_states, home, batch, stages, due_at=time.time()))
            if all(state.is_complete() for state in states):
                report.add_complete(batch, states)
                continue
        run_options = dict(options) if retry is None else {**options, "retry": list(retry[batch])}
        for _ in range(_MAX_ATTEMPTS):
            result = executor.run(batch, stages, run_options, reason)
            report.add_run(batch, result)
            if result.broken is None or runs_all or not result.ran_concurrently:
                break
    switch_complete_sets(home, stages)
    now_serving = serving_sets(home, stages)
    report.took_over = {
        stage: f"{stage}: {new.distinct_name(old)} is now active (was {old.distinct_name(new)})."
        for stage, old in report.served_before.items()
        if (new := now_serving.get(stage)) is not None and new.set != old.set
    }
    report.wall_seconds += time.monotonic() - started
    return report


def _iterate_batches(home: Home, keys: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each batch with False, and again with True if a run of another batch has changed it."""
    seen: dict[str, int] = {}
    while behind := [key for key in keys if home.ledger.batches().get(key, 0) > seen.get(key, -1)]:
        for batch in behind:
            is_repeat = batch in seen
            seen[batch] = home.ledger.batches().get(batch, 0)
            yield batch, is_repeat


# Finish: the statistics of the whole corpus, and model switches.


def finish(home: Home, executor: Executor, report: RunReport) -> None:
    """Update the corpus statistics if batches changed; a failure is reported as a broken batch."""
    if COUNTED_STAGE in report.stages and statistics_are_due(home):
        failure = executor.make_statistics()
        if failure is not None:
            report.broken[STATISTICS] = failure


def finish_stage(home: Home, stage: str, is_alone: Callable[[], bool]) -> CommitResult | None:
    """Update the statistics after a stage of a Dagster run, unless another run is active and will do it."""
    if stage != COUNTED_STAGE or not statistics_are_due(home) or not is_alone():
        return None
    return make_statistics(home)


def switch_complete_sets(
    home: Home, stages: Iterable[str] = tuple(GRAPH), say: Callable[[str], None] = lambda _line: None
) -> None:
    """Switch to model sets that are complete, and finish switches that a killed run left half done."""
    for stage in families(home, stages):
        cut_over(home, stage, say)


def statistics_are_due(home: Home) -> bool:
    """True when the statistics do not match the current tables."""
    tables = home.tables(COUNTED_STAGE)
    return bool(tables.paths) and not are_current(home.layout, tables)


def make_statistics(home: Home) -> CommitResult:
    """Compute the statistics of all lexical tables, unless they are current."""
    with quarantining_damage(home):
        return refresh_stats(home.layout, home.tables(COUNTED_STAGE))


def statistics_numbers(home: Home) -> dict[str, float]:
    """Return the chunks, documents and average length of the last computation."""
    return stats_numbers(home.layout)


def statistics_fingerprint(home: Home) -> str | None:
    """Return a hash of names, sizes and times of the tables and the statistics, without reading them."""
    tables = sorted(home.layout.asset_folder(home.serving_asset(COUNTED_STAGE)).glob("*.parquet"))
    stats = [path for path in [stats_path(home.layout)] if path.is_file()]
    facts = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in [*tables, *stats]]
    return sha256_text(canonical_json(facts)) if tables else None


def statistics_age_s(home: Home, now: float) -> float:
    """Return the seconds since the statistics were written; without any, since the oldest table was."""
    path = stats_path(home.layout)
    tables = home.layout.asset_folder(home.serving_asset(COUNTED_STAGE)).glob("*.parquet")
    since = path.stat().st_mtime if path.is_file() else min(table.stat().st_mtime for table in tables)
    return now - since
