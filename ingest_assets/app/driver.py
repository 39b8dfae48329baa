"""What a run of a home is, in order: refresh, due batches, run one batch, finish.

The command line runs the due batches in its own process, one after another. Sensors and the schedule request
Dagster runs of the same list. A run that a person starts in the web UI refreshes and finishes by itself.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from ingest_assets.app.acquire import acquire_batch, settle_leases
from ingest_assets.app.execution import RunOptions, refuse_early
from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home
from ingest_assets.app.model_switch import (
    Building,
    cut_over,
    families,
    prune_others,
    prune_unwanted,
    served,
)
from ingest_assets.app.plan import StageState, batch_states, has_work
from ingest_assets.app.repair import mended, putting_damage_aside
from ingest_assets.app.stage_run import Staged
from ingest_assets.core.errors import ConfigError, StageError
from ingest_assets.core.identity import canonical_json, sha256_text
from ingest_assets.intake.folders.scan import ScanReport
from ingest_assets.intake.queue.acquired import SOURCE
from ingest_assets.intake.queue.metrics import Measures
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.stages.lexical_stats import are_current, refresh_stats, stats_numbers, stats_path
from ingest_assets.storage.model_sets import SetMark
from ingest_assets.storage.table import Committed, commit

COUNTS = ("scheduled", "skipped", "succeeded", "failed", "cancelled", "retries")
STATISTICS = "lexical_stats"
# The tag that says why a run was requested; one that a person started has none.
REASON = "ingest/reason"
# The stage whose tables the statistics of the whole corpus are made of.
COUNTED = LexicalStage.name
# Runs of a batch that fail in turn with another run at the same batch; more would be a fault of another kind.
_MOST_RUNS_IN_COMPANY = 3


# Refresh: what is there now.


def require_ready(home: Home, stages: Sequence[str], options: RunOptions) -> None:
    """Refuse what a run would be refused for, before anything is started."""
    home.validate()
    refuse_early(home, stages, options)


def record_queue_depth(home: Home, now: float) -> None:
    """Keep how much was queued at this time, for `ingest queue stats` and telemetry."""
    Measures(home.ledger.database).depth(home.queue.stats(now))


def has_no_documents(home: Home) -> bool:
    """True for a home that watches no folder and has nothing queued."""
    return not home.sources() and not home.queue.find(Filter(), limit=1)


def require_documents(home: Home) -> None:
    """Refuse to run a home that has no place to take documents from."""
    if has_no_documents(home):
        raise ConfigError(
            f"No folder is watched by {home.layout.home} and nothing is queued; give a folder with --input "
            "or [sources] in ingest.toml, or a list with `ingest queue import`."
        )


def refresh(home: Home, budget_seconds: float = float("inf"), settle_seconds: float = 0.0) -> ScanReport:
    """Bring the ledger up to date: leases of dead workers, watched folders, what is to be fetched again."""
    settle_leases(home)
    report = home.scan(budget_seconds, settle_seconds)
    if (days := home.settings.queue.refresh_days) > 0:
        home.queue.refresh(time.time(), older_than_s=days * 86_400)
    return report


# Due batches: what there is to do.


@dataclass(frozen=True, slots=True)
class Due:
    """A batch with something to do now. `key` is new for every change, and for every time it becomes due."""

    batch: str
    reason: str
    key: str


def due_batches(home: Home, now: float, *, seen: int | None = None, tick: str = "") -> list[Due]:
    """The batches that a run could do something for, in the order of their keys.

    With `seen`, only those that changed after that revision, and those whose artifacts have waited long
    enough to be tried again. `tick` is part of the keys of those that did not change.
    """
    revisions = home.ledger.batches()
    again = {} if seen is None else home.queue.due_batches(now)
    found = []
    for batch, revision in revisions.items():
        key = f"{batch}@{revision}"
        if seen is None and has_work(home, batch, revision, now):
            found.append(Due(batch, "reconcile", f"{key}@{tick}"))
        elif seen is not None and revision > seen and has_work(home, batch, revision, now):
            found.append(Due(batch, "changed", key))
        elif seen is not None and revision <= seen and batch in again:
            # What is put back gets a new time, so the key is new whenever it becomes due.
            found.append(Due(batch, "due again", f"{key}@{again[batch][1]:.3f}"))
    return found


def run_tags(home: Home, batch: str, reason: str) -> dict[str, str]:
    """Tags of a run that the run queue can limit by."""
    sources = {document.source for document in home.ledger.documents(batch=batch)}
    sources |= {SOURCE} if home.queue.find(Filter(batch=batch), limit=1) else set()
    return {"ingest/batch": batch, REASON: reason, "ingest/source": ",".join(sorted(sources))}


# Run one batch: acquire what it waits for, then commit what each of its steps has staged.


def start_batch(
    home: Home, batch: str, reason: str | None, log: Callable[[str], None], say: Callable[[str], None]
) -> dict[str, Any]:
    """Before a batch's first stage: acquire what is queued for it; gives the counts that are shown.

    A run without a reason was started by a person in the web UI, so nobody has scanned for it yet.
    """
    if reason is None:
        refresh(home)
    return acquire_batch(home, batch, log, say)


def commit_staged(
    home: Home, staged: Staged, say: Callable[[str], None]
) -> tuple[Committed, Building | None]:
    """Commit a stage's rows of a batch; the table is there whole, or as it was.

    A set of vectors that is whole by that takes over; one that is still being built is given.
    """
    stage, batch = staged.outcome.stage, staged.commit.batch
    has_sets = GRAPH[stage].has_sets
    try:
        with putting_damage_aside(home):
            committed = commit(home.layout, staged.commit)
            if has_sets:
                prune_others(home, stage, batch)
            prune_unwanted(home, stage, batch)
    finally:
        staged.release()
    if not has_sets:
        return committed, None
    building = cut_over(home, stage, say)
    # A set that has taken over stands in another folder than the one it was committed to.
    return replace(committed, path=home.layout.table(home.asset(stage), batch)), building


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What one run of a batch came to: numbers by stage, failed documents, and why it stopped, if it did.

    `had_company` when another run was at the batch at the same time: a check looks at all tables of a batch,
    and the other one may just have written one and not yet the next.
    """

    numbers: Mapping[str, Mapping[str, float]]
    errors: Sequence[StageError] = ()
    broken: str | None = None
    had_company: bool = False


class Executor(Protocol):
    """Runs batches, and what is of no batch, in this process."""

    def run(self, batch: str, stages: Sequence[str], options: Mapping[str, Any], reason: str) -> BatchResult:
        """Run these stages of a batch."""
        ...

    def make_statistics(self) -> str | None:
        """Make the statistics of the whole corpus; gives why that failed, if it did."""
        ...


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

    def add_complete(self, batch: str, states: Sequence[StageState]) -> None:
        """A batch with nothing to do."""
        if not self.knows(batch):
            self.complete_before.append(batch)
            for state in states:
                self.stages[state.stage].skipped += len(state.done) + len(state.failed)

    def add_run(self, batch: str, result: BatchResult) -> None:
        """A run of a batch."""
        counts = set(COUNTS) - ({"skipped"} if self.knows(batch) else set())
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
    """Run every batch that is not complete; with `force` or without `resume`, every batch.

    `retry` are the batches to run, complete or not and no others, each with the failed documents to try
    again. `only` are the batches to look at. A `report` of the same stages is added to.
    """
    stages = [stage for stage in stages if stage in home.graph]
    report = report or RunReport(stages={stage: StageTotals() for stage in stages})
    runs_all = bool(options.get("force")) or options.get("resume") is False
    started = time.monotonic()
    keys = [key for key in (home.ledger.batches() if retry is None else retry) if only is None or key in only]
    report.served_before = served(home, stages) | report.served_before
    mended(home, lambda: settle_sets(home, stages))
    for batch, is_again in _in_turn(home, keys):
        runs_anyway = (runs_all or retry is not None) and not is_again
        has_tables = all(home.layout.table(home.asset(stage), batch).is_file() for stage in stages)
        if has_tables and not runs_anyway:  # without a table there is work, and no need to plan to tell
            states = mended(home, partial(batch_states, home, batch, stages, due_at=time.time()))
            if all(state.is_complete() for state in states):
                report.add_complete(batch, states)
                continue
        given = dict(options) if retry is None else {**options, "retry": list(retry[batch])}
        for _ in range(_MOST_RUNS_IN_COMPANY):
            result = executor.run(batch, stages, given, reason)
            report.add_run(batch, result)
            if result.broken is None or runs_all or not result.had_company:
                break
    settle_sets(home, stages)
    now_serving = served(home, stages)
    report.took_over = {
        stage: f"{stage}: {new.name_beside(old)} serves from now on (was {old.name_beside(new)})."
        for stage, old in report.served_before.items()
        if (new := now_serving.get(stage)) is not None and new.set != old.set
    }
    report.wall_seconds += time.monotonic() - started
    return report


def _in_turn(home: Home, keys: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each batch once, and again when a run of another one has changed how its documents stand."""
    seen: dict[str, int] = {}
    while behind := [key for key in keys if home.ledger.batches().get(key, 0) > seen.get(key, -1)]:
        for batch in behind:
            is_again = batch in seen
            seen[batch] = home.ledger.batches().get(batch, 0)
            yield batch, is_again


# Finish: what is of the whole corpus.


def finish(home: Home, executor: Executor, report: RunReport) -> None:
    """Make what is of the whole corpus again, if batches changed it; a failure is told as a broken batch."""
    if COUNTED in report.stages and statistics_are_due(home):
        failure = executor.make_statistics()
        if failure is not None:
            report.broken[STATISTICS] = failure


def finish_alone(home: Home, stage: str, is_alone: Callable[[], bool]) -> Committed | None:
    """The same after a stage of a run that no command finishes, unless another run will do it."""
    if stage != COUNTED or not statistics_are_due(home) or not is_alone():
        return None
    return make_statistics(home)


def settle_sets(
    home: Home, stages: Iterable[str] = tuple(GRAPH), say: Callable[[str], None] = lambda _line: None
) -> None:
    """Let sets of vectors take over that are whole, and finish what a killed run left of a switch."""
    for stage in families(home, stages):
        cut_over(home, stage, say)


def statistics_are_due(home: Home) -> bool:
    """True when the statistics are not those of the tables as they are now."""
    tables = home.tables(COUNTED)
    return bool(tables.paths) and not are_current(home.layout, tables)


def make_statistics(home: Home) -> Committed:
    """Count all lexical tables again, unless the statistics are theirs already."""
    with putting_damage_aside(home):
        return refresh_stats(home.layout, home.tables(COUNTED))


def statistics_numbers(home: Home) -> dict[str, float]:
    """Chunks, documents and average length as they were counted last."""
    return stats_numbers(home.layout)


def statistics_mark(home: Home) -> str | None:
    """Names, sizes and times, of the statistics too: a look must not read the corpus."""
    tables = sorted(home.layout.asset_folder(home.serving(COUNTED)).glob("*.parquet"))
    stats = [path for path in [stats_path(home.layout)] if path.is_file()]
    found = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in [*tables, *stats]]
    return sha256_text(canonical_json(found)) if tables else None


def statistics_age_s(home: Home, now: float) -> float:
    """How long the statistics, or the first table without any, have been there."""
    path = stats_path(home.layout)
    tables = home.layout.asset_folder(home.serving(COUNTED)).glob("*.parquet")
    since = path.stat().st_mtime if path.is_file() else min(table.stat().st_mtime for table in tables)
    return now - since
