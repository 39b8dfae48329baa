"""What is done for a batch and what a run would do, for the driver, `ingest plan` and `ingest status`.

An item is done by the same predicate that resume and the checks use (`core.items.is_current`). Fingerprints
are computed in `stages/base.py` (`work_items`); a run decides with `runner/schedule.py` (`verdict_of`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from statistics import fmean
from typing import Literal

from ingest_assets.app.acquire import requeue_lost
from ingest_assets.app.execution import RunOptions, expected_workers
from ingest_assets.app.graph import FIRST_STAGE
from ingest_assets.app.home import Home, is_due
from ingest_assets.app.repair import quarantine_damaged
from ingest_assets.core.errors import TableMissing
from ingest_assets.core.identity import canonical_json, sha256_text
from ingest_assets.core.items import WorkItem, is_current
from ingest_assets.intake.queue.acquire import MAX_LEASE_WAIT_S
from ingest_assets.intake.queue.artifacts import Artifact
from ingest_assets.intake.queue.metrics import QueueMetrics
from ingest_assets.runner import read_newest
from ingest_assets.stages.base import config_hash
from ingest_assets.storage.parquet import read_footer

# Why an item runs: it is not in the table yet, must be fetched, has other content or settings, failed before,
# or is forced.
Reason = Literal["new", "fetch", "changed", "settings", "retry", "forced"]


@dataclass(frozen=True, slots=True)
class StageState:
    """The items of a batch that a stage has done, would run (with the reasons) and would remove."""

    stage: str
    batch: str
    run: Mapping[str, Reason]
    done: tuple[str, ...]
    failed: tuple[str, ...]
    removed: tuple[str, ...]
    has_table: bool

    def is_complete(self) -> bool:
        """True if running the stage would change nothing."""
        return self.has_table and not self.run and not self.removed


def batch_states(
    home: Home, batch: str, stages: Sequence[str] | None = None, *, due_at: float | None = None
) -> list[StageState]:
    """Return the state of each stage. Items that a stage will run or remove count so for those below it.

    Artifacts still to be acquired count as items to run; with `due_at`, only those due by then.
    """
    states: dict[str, StageState] = {}
    for stage, node in home.graph.items():
        if stages is None or stage in stages:
            above = [states[read] for read in node.reads if read in states]
            pending = {item: reason for state in above for item, reason in state.run.items()}
            if not node.reads:
                pending = {
                    artifact.artifact_id: "fetch" for artifact in home.pending_artifacts(batch, due_at)
                }
            removed = {item for state in above for item in state.removed} - pending.keys()
            states[stage] = _state(home, stage, batch, pending, removed)
    return list(states.values())


def has_work(home: Home, batch: str, revision: int, now: float) -> bool:
    """True if a run has something to do for the batch now.

    The ledger stores a hash of the documents, settings and files of each complete batch, so that checking
    thousands of complete batches reads only a few file sizes each.
    """
    state_hash = _state_hash(home, batch, revision)
    if state_hash is not None and home.ledger.complete_fingerprint(batch) == state_hash:
        return False
    states = quarantine_damaged(home, partial(batch_states, home, batch, due_at=now))
    if not all(state.is_complete() for state in states):
        return True
    if state_hash is not None and not home.pending_artifacts(batch):
        home.ledger.set_complete_fingerprint(batch, state_hash)
    return False


def _state_hash(home: Home, batch: str, revision: int) -> str | None:
    facts: list[object] = [revision, home.configuration_hash]
    for stage in home.graph:
        try:
            status = home.layout.table(home.asset(stage), batch).stat()
        except FileNotFoundError:
            return None
        facts.append([status.st_size, status.st_mtime_ns])
    return sha256_text(canonical_json(facts))


def _state(
    home: Home, stage: str, batch: str, pending: Mapping[str, Reason], removed: set[str]
) -> StageState:
    path = home.layout.table(home.asset(stage), batch)
    stored = read_footer(path)
    try:
        items = [item for item in home.plan(stage, batch) if item.item_id not in removed]
    except TableMissing:
        items = []
    # Only committed rows count: readers do not see finished parts.
    records = stored.items if stored else {}
    planned = {item.item_id for item in items}
    finished = [
        item
        for item in items
        if item.item_id not in pending
        and (is_current(records.get(item.item_id), item.fingerprint) or item.is_known_to_fail())
    ]
    finished_ids = {item.item_id for item in finished}
    in_table = {*records, *(stored.failures if stored else ())}
    to_run = [item for item in items if item.item_id not in finished_ids]
    has_other_settings = stored is not None and stored.config_hash != config_hash(home.stages[stage])
    return StageState(
        stage=stage,
        batch=batch,
        run={
            item.item_id: pending.get(item.item_id) or _reason(item, in_table, has_other_settings)
            for item in to_run
        }
        | {item: pending[item] for item in sorted(pending.keys() - planned)},
        done=tuple(item.item_id for item in finished if not item.is_known_to_fail()),
        failed=tuple(item.item_id for item in finished if item.is_known_to_fail()),
        removed=tuple(sorted(in_table - planned - pending.keys())),
        has_table=stored is not None,
    )


def _reason(item: WorkItem, in_table: Collection[str], has_other_settings: bool) -> Reason:
    if item.known_failure is not None:
        return "retry"
    if item.item_id not in in_table:
        return "new"
    return "settings" if has_other_settings else "changed"


# Forecast of a run, assuming that every document succeeds. An upper bound: only the run finds out whether a
# document has merely moved, can be read and is admitted.


@dataclass(frozen=True, slots=True)
class BatchForecast:
    """What a run would do for one batch. `blocked` is why it would stop; empty if it would not.

    `waiting` artifacts are not due yet or leased by another worker. `done` documents need no stage; `gone`
    documents are removed from the tables.
    """

    batch: str
    stages: tuple[StageState, ...]
    fetch: tuple[Artifact, ...] = ()
    waiting: int = 0
    done: int = 0
    gone: int = 0
    blocked: str = ""


def forecast(home: Home, batch: str, stages: Sequence[str], config: RunOptions, now: float) -> BatchForecast:
    """Return a batch's forecast. Needs a read-only home: it queues lost artifacts in the ledger copy."""
    pending_artifacts: list[Artifact] = []
    if FIRST_STAGE in stages:
        requeue_lost(home, batch)
        pending_artifacts = home.pending_artifacts(batch)
    fetch = tuple(artifact for artifact in pending_artifacts if is_due(artifact, now + MAX_LEASE_WAIT_S))
    states, blocked = [], ""
    for state in batch_states(home, batch, stages, due_at=now + MAX_LEASE_WAIT_S):
        if blocked := _missing_above(home, state, stages):
            break
        options = config.over(home.options(state.stage))
        if options.force or not options.resume:
            others: dict[str, Reason] = dict.fromkeys((*state.done, *state.failed), "forced")
            state = replace(state, run={**state.run, **others}, done=(), failed=())
        states.append(state)
    not_done = {doc for state in states for doc in (*state.run, *state.failed)}
    gone = {doc for state in states for doc in state.removed}
    if gone:
        gone &= {document.doc_id for document in home.ledger.documents(batch=batch) if document.is_deleted()}
    done = {doc for state in states[:1] for doc in state.done} - not_done
    waiting = len(pending_artifacts) - len(fetch)
    return BatchForecast(batch, tuple(states), fetch, waiting, len(done), len(gone), blocked)


def _missing_above(home: Home, state: StageState, stages: Sequence[str]) -> str:
    """Return why a stage cannot run: a table that it reads is missing, and this run does not build it."""
    for above in home.graph[state.stage].reads:
        if above not in stages:
            try:
                home.table(above, state.batch)
            except TableMissing as missing:
                return str(missing)
    return ""


# Estimates of a run's duration, from the documents of past runs, without the time to start workers.


# The number of recent documents to average, and the manifest rows to read for them.
_ROWS = 500
_MAX_ROWS_READ = 5_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds, or why there is no estimate."""

    seconds: float | None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class PastTimes:
    """Mean seconds per document in a stage: by file suffix, and over all documents."""

    by_suffix: dict[str, float]
    overall: float

    def seconds(self, ids: Iterable[str]) -> float:
        """Return the expected time of these documents, one after the other."""
        return sum(self.by_suffix.get(_suffix(doc_id), self.overall) for doc_id in ids)


def past_times(home: Home, stage: str) -> PastTimes | None:
    """Return the mean times of a stage's last documents; None if it has not run yet."""
    rows = islice(read_newest(home.layout.manifest(stage)), _MAX_ROWS_READ)
    done = (row for row in rows if row.status == "done" and "exec_s" in row.timings)
    times: dict[str, list[float]] = defaultdict(list)
    for row in islice(done, _ROWS):
        times[_suffix(row.item_id)].append(float(row.timings["exec_s"]))
    if not times:
        return None
    overall = fmean(seconds for group in times.values() for seconds in group)
    return PastTimes({suffix: fmean(group) for suffix, group in times.items()}, overall)


def stage_estimate(home: Home, stage: str, batches: Sequence[Sequence[str]], config: RunOptions) -> Estimate:
    """Estimate a stage for the documents of each batch; batches run one after the other."""
    todo = [batch for batch in batches if batch]
    if not todo:
        return Estimate(0.0)
    past, workers = past_times(home, stage), expected_workers(home, stage, config)
    if past is None:
        return Estimate(None, "no earlier runs")
    if workers is None:
        return Estimate(None, "the cluster decides the number of workers")
    return Estimate(sum(past.seconds(batch) / min(workers, len(batch)) for batch in todo))


def fetch_estimate(home: Home, batches: Sequence[Sequence[Artifact]]) -> Estimate:
    """Estimate fetching the artifacts of each batch, within the limits of the queue and per host."""
    todo = [batch for batch in batches if batch]
    if not todo:
        return Estimate(0.0)
    totals = QueueMetrics(home.ledger.database).totals()
    if not totals.fetches:
        return Estimate(None, "no earlier fetches")
    mean_s = totals.fetch_seconds / totals.fetches
    queue, delay_s = home.settings.queue, home.settings.fetch.politeness_delay_s
    seconds = 0.0
    for batch in todo:
        hosts = Counter(artifact.host for artifact in batch if artifact.host)
        bounds = [max((n - 1) * delay_s, n * mean_s / min(n, queue.max_per_host)) for n in hosts.values()]
        seconds += max([len(batch) * mean_s / min(len(batch), queue.max_workers), *bounds])
    return Estimate(seconds)


def _suffix(doc_id: str) -> str:
    return PurePosixPath(doc_id).suffix.lower()
