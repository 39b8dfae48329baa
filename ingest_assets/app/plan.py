"""What is done for a batch and what a run would do: the driver, `ingest plan` and `ingest status` ask here.

An item is done by the same predicate that resume and the checks use (`core.items.is_current`). What makes it
stale is decided in `stages/base.py` (`work_items`); the run itself asks `runner/schedule.py` (`verdict_of`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from statistics import fmean

from ingest_assets.app.acquire import line_up
from ingest_assets.app.execution import RunOptions, workers_in_sight
from ingest_assets.app.graph import INTAKE
from ingest_assets.app.home import Home, is_due
from ingest_assets.app.repair import mended
from ingest_assets.core.errors import TableMissing
from ingest_assets.core.identity import canonical_json, sha256_text
from ingest_assets.core.items import is_current
from ingest_assets.intake.queue.acquire import PATIENCE_S
from ingest_assets.intake.queue.artifacts import Artifact
from ingest_assets.intake.queue.metrics import Measures
from ingest_assets.runner import read_newest
from ingest_assets.storage.parquet import read_footer


@dataclass(frozen=True, slots=True)
class StageState:
    """What a stage has done and would do for one batch."""

    stage: str
    batch: str
    run: tuple[str, ...]
    done: tuple[str, ...]
    failed: tuple[str, ...]
    removed: tuple[str, ...]
    has_table: bool

    def is_complete(self) -> bool:
        """True when running the stage would change nothing."""
        return self.has_table and not self.run and not self.removed


def batch_states(
    home: Home, batch: str, stages: Sequence[str] | None = None, *, due_at: float | None = None
) -> list[StageState]:
    """The state of each of these stages; what one of them will run or remove counts so below it too.

    What is still to be acquired is to be run; with `due_at`, only what can be tried by then.
    """
    states: dict[str, StageState] = {}
    for stage, node in home.graph.items():
        if stages is None or stage in stages:
            above = [states[read] for read in node.reads if read in states]
            pending = {item for state in above for item in state.run}
            if not node.reads:
                pending = {artifact.artifact_id for artifact in home.awaited(batch, due_at)}
            gone = {item for state in above for item in state.removed} - pending
            states[stage] = _state(home, stage, batch, pending, gone)
    return list(states.values())


def has_work(home: Home, batch: str, revision: int, now: float) -> bool:
    """True when a run could do something for the batch by then. What waits for longer is nobody's work yet.

    That a batch is complete is remembered in the ledger for exactly these documents, settings and files, so
    that a night's look over thousands of complete batches costs a few file sizes each.
    """
    mark = _mark(home, batch, revision)
    if mark is not None and home.ledger.complete_mark(batch) == mark:
        return False
    states = mended(home, partial(batch_states, home, batch, due_at=now))
    if not all(state.is_complete() for state in states):
        return True
    if mark is not None and not home.awaited(batch):
        home.ledger.set_complete_mark(batch, mark)
    return False


def _mark(home: Home, batch: str, revision: int) -> str | None:
    facts: list[object] = [revision, home.configuration_hash]
    for stage in home.graph:
        try:
            status = home.layout.table(home.asset(stage), batch).stat()
        except FileNotFoundError:
            return None
        facts.append([status.st_size, status.st_mtime_ns])
    return sha256_text(canonical_json(facts))


def _state(home: Home, stage: str, batch: str, pending: set[str], gone: set[str]) -> StageState:
    path = home.layout.table(home.asset(stage), batch)
    stored = read_footer(path)
    try:
        items = [item for item in home.plan(stage, batch) if item.item_id not in gone]
    except TableMissing:
        items = []
    # Only what is committed counts: rows that wait as parts are finished, but nobody can read them yet.
    held = stored.items if stored else {}
    planned = {item.item_id for item in items}
    settled = [
        item
        for item in items
        if item.item_id not in pending
        and (is_current(held.get(item.item_id), item.fingerprint) or item.is_known_to_fail())
    ]
    done = {item.item_id for item in settled}
    kept = {*held, *(stored.failures if stored else ())}
    return StageState(
        stage=stage,
        batch=batch,
        run=tuple([item.item_id for item in items if item.item_id not in done] + sorted(pending - planned)),
        done=tuple(item.item_id for item in settled if not item.is_known_to_fail()),
        failed=tuple(item.item_id for item in items if item.known_failure and item.item_id not in pending),
        removed=tuple(sorted(kept - planned - pending)),
        has_table=stored is not None,
    )


# What a run would do to a batch, as if all that is tried goes well. An upper bound: whether a document only
# moved, will be admitted or can be read, is known when it runs.


@dataclass(frozen=True, slots=True)
class BatchForecast:
    """What a run would do for one batch: `waiting` artifacts are for later, because they have to wait or are
    held by another worker; `blocked` says why it would stop.

    `done` documents have nothing left to do in any of the stages; `gone` ones leave the tables.
    """

    batch: str
    stages: tuple[StageState, ...]
    fetch: tuple[Artifact, ...] = ()
    waiting: int = 0
    done: int = 0
    gone: int = 0
    blocked: str = ""


def forecast(home: Home, batch: str, stages: Sequence[str], config: RunOptions, now: float) -> BatchForecast:
    """Give it a home that only looks: what a run does to the ledger first is done to the copy."""
    awaited: list[Artifact] = []
    if INTAKE in stages:
        line_up(home, batch)
        awaited = home.awaited(batch)
    fetch = tuple(artifact for artifact in awaited if is_due(artifact, now + PATIENCE_S))
    states, blocked = [], ""
    for state in batch_states(home, batch, stages, due_at=now + PATIENCE_S):
        if blocked := _missing_above(home, state, stages):
            break
        options = config.over(home.options(state.stage))
        if options.force or not options.resume:
            every = (*state.run, *state.done, *state.failed)
            state = replace(state, run=every, done=(), failed=())
        states.append(state)
    busy = {doc for state in states for doc in (*state.run, *state.failed)}
    gone = {doc for state in states for doc in state.removed}
    if gone:
        gone &= {each.doc_id for each in home.ledger.documents(batch=batch) if each.is_deleted()}
    done = {doc for state in states[:1] for doc in state.done} - busy
    waiting = len(awaited) - len(fetch)
    return BatchForecast(batch, tuple(states), fetch, waiting, len(done), len(gone), blocked)


def _missing_above(home: Home, state: StageState, stages: Sequence[str]) -> str:
    """Why a stage cannot run: a table that it reads is not there and not made by this run."""
    for above in home.graph[state.stage].reads:
        if above not in stages:
            try:
                home.table(above, state.batch)
            except TableMissing as missing:
                return str(missing)
    return ""


# How long a run will take, by what the documents of past runs took.
#
# Only the documents' own time counts: what workers need to start and load is not in it.


# So many of the last documents are averaged, and the manifest is read no further back for them than this.
_ROWS = 500
_ROWS_LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds, or why nobody can tell."""

    seconds: float | None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """Seconds that one document took in a stage: by the ending of its name, and over all."""

    by_ending: dict[str, float]
    overall: float

    def seconds(self, ids: Iterable[str]) -> float:
        """What these documents will take, one after the other."""
        return sum(self.by_ending.get(_ending(doc_id), self.overall) for doc_id in ids)


def past_of(home: Home, stage: str) -> Past | None:
    """The last documents that a stage has done; None when there is none."""
    rows = islice(read_newest(home.layout.manifest(stage)), _ROWS_LOOKED_AT)
    done = (row for row in rows if row.status == "done" and "exec_s" in row.timings)
    taken: dict[str, list[float]] = defaultdict(list)
    for row in islice(done, _ROWS):
        taken[_ending(row.item_id)].append(float(row.timings["exec_s"]))
    if not taken:
        return None
    everything = [seconds for some in taken.values() for seconds in some]
    return Past({ending: fmean(some) for ending, some in taken.items()}, fmean(everything))


def stage_estimate(home: Home, stage: str, batches: Sequence[Sequence[str]], config: RunOptions) -> Estimate:
    """For the documents of each batch; batches run one after the other."""
    todo = [batch for batch in batches if batch]
    if not todo:
        return Estimate(0.0)
    past, workers = past_of(home, stage), workers_in_sight(home, stage, config)
    if past is None:
        return Estimate(None, "never done here yet")
    if workers is None:
        return Estimate(None, "only the cluster knows its number of workers")
    return Estimate(sum(past.seconds(batch) / min(workers, len(batch)) for batch in todo))


def fetch_estimate(home: Home, batches: Sequence[Sequence[Artifact]]) -> Estimate:
    """For the artifacts of each batch: as many at a time as the queue allows, and as the hosts do."""
    todo = [batch for batch in batches if batch]
    if not todo:
        return Estimate(0.0)
    totals = Measures(home.ledger.database).totals()
    if not totals.fetches:
        return Estimate(None, "nothing was fetched yet")
    mean_s = totals.fetch_seconds / totals.fetches
    queue, delay_s = home.settings.queue, home.settings.fetch.politeness_delay_s
    seconds = 0.0
    for batch in todo:
        hosts = Counter(artifact.host for artifact in batch if artifact.host)
        bounds = [max((n - 1) * delay_s, n * mean_s / min(n, queue.max_per_host)) for n in hosts.values()]
        seconds += max([len(batch) * mean_s / min(len(batch), queue.max_workers), *bounds])
    return Estimate(seconds)


def _ending(doc_id: str) -> str:
    return PurePosixPath(doc_id).suffix.lower()
