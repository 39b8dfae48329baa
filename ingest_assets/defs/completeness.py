"""Is a batch complete? The sensor, the schedule, `ingest plan` and `ingest status` all ask here.

An item is done by the same predicate that resume and the checks use (`model.items.is_current`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.defs.home import UPSTREAM, Home
from ingest_assets.model.errors import TableMissing
from ingest_assets.model.items import WorkItem
from ingest_assets.storage.footer import read_footer


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


def batch_states(home: Home, batch: str, stages: Sequence[str] = tuple(UPSTREAM)) -> list[StageState]:
    """The state of each stage; what a stage above will run counts as to be run below it too."""
    states: dict[str, StageState] = {}
    for stage in UPSTREAM:
        above = UPSTREAM[stage]
        states[stage] = _state(home, stage, batch, states[above] if above else None)
    return [states[stage] for stage in UPSTREAM if stage in stages]


def is_batch_complete(home: Home, batch: str) -> bool:
    """True when no stage has anything left to do for the batch."""
    return all(state.is_complete() for state in batch_states(home, batch))


def _state(home: Home, stage: str, batch: str, above: StageState | None) -> StageState:
    path = home.layout.table(home.asset(stage), batch)
    stored = read_footer(path)
    try:
        items = home.plan(stage, batch)
    except TableMissing:
        items = []
    planned = {item.item_id for item in items}
    pending = set(above.run) if above else set()
    run = [item.item_id for item in items if item.item_id in pending or not _is_settled(item)]
    run += sorted(pending - planned)
    kept = set(stored.items) | set(stored.failures) if stored else set()
    return StageState(
        stage=stage,
        batch=batch,
        run=tuple(run),
        done=sum(item.satisfies() for item in items if item.item_id not in pending),
        failed=tuple(item.item_id for item in items if item.known_failure and item.item_id not in pending),
        removed=len(kept - planned - pending),
        has_table=stored is not None,
    )


def _is_settled(item: WorkItem) -> bool:
    return item.satisfies() or item.is_known_to_fail()
