"""Is a batch complete? The sensor, the schedule, `ingest plan` and `ingest status` all ask here.

An item is done by the same predicate that resume and the checks use (`model.items.is_current`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ingest_assets.defs.healing import mended
from ingest_assets.defs.home import Home
from ingest_assets.model.errors import TableMissing
from ingest_assets.model.identity import canonical_json, sha256_text
from ingest_assets.model.items import WorkItem, is_current
from ingest_assets.storage.footer import Footer, read_footer


@dataclass(frozen=True, slots=True)
class StageState:
    """What a stage has done and would do for one batch."""

    stage: str
    batch: str
    run: tuple[str, ...]
    done: int
    failed: tuple[str, ...]
    removed: int
    has_table: bool

    def is_complete(self) -> bool:
        """True when running the stage would change nothing."""
        return self.has_table and not self.run and not self.removed


def batch_states(
    home: Home, batch: str, stages: Sequence[str] | None = None, *, due_at: float | None = None
) -> list[StageState]:
    """The state of each stage; what a stage above will run counts as to be run below it too.

    What is still to be acquired is to be run; with `due_at`, only what can be tried by then.
    """
    states: dict[str, StageState] = {}
    for stage, node in home.graph.items():
        pending = {item for above in node.reads for item in states[above].run}
        if not node.reads:
            pending = set(home.awaited(batch, due_at))
        states[stage] = _state(home, stage, batch, pending)
    return [state for stage, state in states.items() if stages is None or stage in stages]


def has_work(home: Home, batch: str, revision: int, now: float) -> bool:
    """True when a run could do something for the batch now. What waits for its time is nobody's work yet."""
    mark = _mark(home, batch, revision)
    if mark is not None and home.ledger.complete_mark(batch) == mark:
        return False
    states = mended(home, partial(batch_states, home, batch, due_at=now))
    if not all(state.is_complete() for state in states):
        return True
    if not home.awaited(batch):
        _remember(home, batch, mark)
    return False


def is_batch_complete(home: Home, batch: str, revision: int) -> bool:
    """True when no stage has anything left to do for the batch.

    The answer is remembered in the ledger for exactly these documents, settings and files, so that a night's
    look over thousands of complete batches costs a few file sizes each.
    """
    mark = _mark(home, batch, revision)
    if mark is not None and home.ledger.complete_mark(batch) == mark:
        return True
    complete = all(state.is_complete() for state in mended(home, partial(batch_states, home, batch)))
    if complete:
        _remember(home, batch, mark)
    return complete


def _remember(home: Home, batch: str, mark: str | None) -> None:
    if mark is not None:
        home.ledger.set_complete_mark(batch, mark)


def _mark(home: Home, batch: str, revision: int) -> str | None:
    facts: list[object] = [revision, home.configuration_hash]
    for stage in home.graph:
        try:
            status = home.layout.table(home.asset(stage), batch).stat()
        except FileNotFoundError:
            return None
        facts.append([status.st_size, status.st_mtime_ns])
    return sha256_text(canonical_json(facts))


def _state(home: Home, stage: str, batch: str, pending: set[str]) -> StageState:
    path = home.layout.table(home.asset(stage), batch)
    stored = read_footer(path)
    try:
        items = home.plan(stage, batch)
    except TableMissing:
        items = []
    planned = {item.item_id for item in items}
    settled = [item for item in items if item.item_id not in pending and _is_settled(item, stored)]
    done = {item.item_id for item in settled}
    kept = set(stored.items) | set(stored.failures) if stored else set()
    return StageState(
        stage=stage,
        batch=batch,
        run=tuple([item.item_id for item in items if item.item_id not in done] + sorted(pending - planned)),
        done=sum(not item.is_known_to_fail() for item in settled),
        failed=tuple(item.item_id for item in items if item.known_failure and item.item_id not in pending),
        removed=len(kept - planned - pending),
        has_table=stored is not None,
    )


def _is_settled(item: WorkItem, stored: Footer | None) -> bool:
    """Only what is committed counts: rows that wait as parts are finished, but nobody can read them yet."""
    record = stored.items.get(item.item_id) if stored else None
    return is_current(record, item.fingerprint) or item.is_known_to_fail()
