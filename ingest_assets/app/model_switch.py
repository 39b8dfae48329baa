"""Model switches: a new model set replaces the serving one as soon as it is complete."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home
from ingest_assets.core.errors import StageError, TableMissing, is_permanent
from ingest_assets.core.items import is_current
from ingest_assets.storage.locks import FileLock, LockGroup
from ingest_assets.storage.model_sets import SetState, prune
from ingest_assets.storage.parquet import Footer, read_footer

# Batches listed in a message.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class PendingSwitch:
    """A set that is built next to the serving one: what it lacks, and the failures that hold it back.

    If the serving set has no rows, the new one `replaces_nothing` and need not be complete.
    """

    stage: str
    old: SetState
    new: SetState
    batches: int
    missing: tuple[str, ...]
    failures: tuple[StageError, ...] = ()
    documents: int = 0
    replaces_nothing: bool = False

    def can_serve(self) -> bool:
        """True if the switch would lose no rows."""
        return self.replaces_nothing or (not self.missing and not self.failures)

    def as_object(self) -> dict[str, Any]:
        """Return the switch as a JSON object."""
        return {
            "family": self.stage,
            "summary": self.as_line(),
            "serving": self.old.set,
            "serving_model": self.old.model,
            "serving_has_rows": not self.replaces_nothing,
            "building": self.new.set,
            "building_model": self.new.model,
            "batches": self.batches,
            "batches_missing": list(self.missing),
            "documents_to_embed": self.documents,
            "held_back_by": [
                {"doc_id": e.item_id, "code": e.code, "message": e.message} for e in self.failures
            ],
        }

    def as_line(self) -> str:
        """Return the switch as one line for logs and commands."""
        old, new = self.old.distinct_name(self.new), self.new.distinct_name(self.old)
        when = f"{old} stays active until {new} is complete"
        if self.replaces_nothing:
            when = f"{old} has no rows, so {new} replaces it as soon as no other run is writing"
        done = self.batches - len(self.missing)
        line = f"{self.stage}: {when}: {done} of {self.batches} batches done"
        if self.missing:
            more = ", …" if len(self.missing) > _SHOWN else ""
            line += f", missing {', '.join(self.missing[:_SHOWN])}{more}"
        if self.failures:
            first, count = self.failures[0], len(self.failures)
            documents = "document" if count == 1 else "documents"
            reason = f"{first.item_id} [{first.code}] {first.message.rstrip('.')}"
            failed = f"{count} failed {documents}, first {reason}"
            if not self.replaces_nothing:
                failed = (
                    f"blocked by {failed}; fix the cause, or accept failures with embeddings.switch_without"
                )
            line += f"; {failed}"
        return f"{line}."


def pending_switch(home: Home, stage: str, *, is_detailed: bool = True) -> PendingSwitch | None:
    """Return what a family's new set lacks, or None if the configured set is the serving one.

    With `is_detailed=False`, no footers are read if a table is missing or the serving set has no rows.
    """
    family, requested = home.family(stage), home.requested_sets[stage]
    current = family.current()
    if current is None or current.set == requested.set:
        return None
    asset, above = home.asset(stage), [home.asset(name) for name in GRAPH[stage].reads]
    batches = []
    for batch in home.ledger.batches():
        # Batches with something to embed, or with rows in the serving set.
        has_input = all(home.layout.table(name, batch).is_file() for name in above)
        if has_input or home.layout.table(home.serving_asset(stage), batch).is_file():
            batches.append(batch)
    missing = [batch for batch in batches if not home.layout.table(asset, batch).is_file()]
    is_empty = not family.has_rows()
    switch = PendingSwitch(stage, current, requested, len(batches), tuple(missing), replaces_nothing=is_empty)
    is_decided = is_empty or bool(missing)
    return switch if is_decided and not is_detailed else _with_details(home, switch, batches)


def pending_switches(home: Home) -> list[PendingSwitch]:
    """Return the switches of all sets that are being built."""
    return [switch for stage in families(home) if (switch := pending_switch(home, stage)) is not None]


def families(home: Home, among: Iterable[str] = tuple(GRAPH)) -> list[str]:
    """Return the enabled stages that write an embedding family."""
    return [stage for stage in among if GRAPH[stage].has_sets and stage in home.stages]


def serving_sets(home: Home, among: Iterable[str] = tuple(GRAPH)) -> dict[str, SetState]:
    """Return the serving set of each family that has rows."""
    serving = {stage: home.family(stage).serving() for stage in families(home, among)}
    return {stage: state for stage, state in serving.items() if state is not None}


def cut_over(home: Home, stage: str, say: Callable[[str], None]) -> PendingSwitch | None:
    """Switch to the new set if that loses no rows and no run is writing; else return and log it."""
    family = home.family(stage)
    recover(home, stage)
    pending = pending_switch(home, stage, is_detailed=False)
    if pending is None:
        return None
    lock = FileLock(home.layout.family_lock(family.asset))
    if pending.can_serve() and lock.try_acquire():
        try:
            locked = pending_switch(home, stage, is_detailed=not pending.replaces_nothing)
            if locked is not None and locked.can_serve():
                family.cut_over(locked.new)
                new, old = locked.new.distinct_name(locked.old), locked.old
                old_set = f"{old.name} is removed"
                if old.set in family.other_sets():
                    old_set = f"{old.name} is kept as {family.asset}@{old.set}"
                say(f"{stage}: {new} is now active; {old_set}.")
            pending = pending_switch(home, stage, is_detailed=False)
        finally:
            lock.release()
    if pending is not None:
        say(pending.as_line())
    return pending


def replace_empty_set(home: Home, stage: str, say: Callable[[str], None]) -> None:
    """Switch to a new set before it is built, if the serving set has no rows.

    If another run is writing, the set is built next to the serving one and switched to afterwards.
    """
    family = home.family(stage)
    current = family.current()
    if current is not None and current.set != home.requested_sets[stage].set and not family.has_rows():
        cut_over(home, stage, say)


def recover(home: Home, stage: str) -> None:
    """Finish a switch that a killed run left incomplete."""
    family = home.family(stage)
    if family.is_interrupted():
        lock = FileLock(home.layout.family_lock(family.asset))
        lock.acquire()
        try:
            family.recover()
        finally:
            lock.release()


def remove_abandoned(home: Home, stage: str, before: float) -> list[str]:
    """Remove sets that are not serving, requested or previous, and were not modified after `before`."""
    family = home.family(stage)
    lock = FileLock(home.layout.family_lock(family.asset))
    if not family.other_sets() or not lock.try_acquire():
        return []
    try:
        current = family.current() or SetState("")
        needed = {home.requested_sets[stage].set, current.previous} - {current.set}
        recent = {name for name in family.other_sets() if family.modified_at(name) >= before}
        return family.remove_all_but(needed | recent)
    finally:
        lock.release()


def prune_other_sets(home: Home, stage: str, batch: str) -> None:
    """Remove deleted documents from a family's other sets.

    From sets that do not serve, also remove documents that are chunked differently now. The caller holds the
    locks of the batch and of its chunks.
    """
    family, spec_now = home.family(stage), home.spec(stage)
    for asset in family.assets_with(batch):
        if asset != spec_now.asset:
            chunks = home.table(GRAPH[stage].reads[0], batch)
            spec = replace(spec_now, asset=asset)
            prune(home.layout, spec, batch, chunks, serves=asset == family.asset)


def prune_disabled_families(home: Home, above: str, batch: str) -> None:
    """Remove deleted documents from families that the settings disable, whose tables no stage rewrites.

    `above` is the stage that these families read; the caller holds the lock of its table.
    """
    for stage, node in GRAPH.items():
        if not node.has_sets or stage in home.graph or node.reads[0] != above:
            continue
        lock = FileLock(home.layout.lock(home.serving_asset(stage), batch))
        lock.acquire()
        try:
            for asset in home.family(stage).assets_with(batch):
                spec = replace(node.table, asset=asset)
                prune(home.layout, spec, batch, home.table(node.reads[0], batch), serves=True)
        finally:
            lock.release()


def _with_details(home: Home, switch: PendingSwitch, batches: list[str]) -> PendingSwitch:
    """Add the incomplete batches and the failures that a further run would retry, which hold the set back.

    At most `embeddings.switch_without` of these failures are accepted.
    """
    to_embed, done, permanent, failures, missing, failed_in = 0, 0, [], [], set(), set()
    for batch in batches:
        footer = read_footer(home.layout.table(home.asset(switch.stage), batch))
        errors = list(_undone(home, switch.stage, batch, footer))
        failed = [error for error in errors if error is not None and not is_permanent(error)]
        untried = errors.count(None)
        to_embed += untried + len(failed)
        permanent += [error for error in errors if error is not None and is_permanent(error)]
        failures += failed
        done += 0 if footer is None else len(footer.items)
        read = [home.layout.table(home.asset(above), batch) for above in GRAPH[switch.stage].reads]
        if footer is None or untried or any(read_footer(path) is None for path in read):
            missing.add(batch)
        if failed:
            failed_in.add(batch)
    if not done:
        failures += permanent  # a set without rows must not replace one with rows
    elif len(failures) <= home.settings.embeddings.switch_without:
        failures, failed_in = [], set()
    incomplete = tuple(batch for batch in batches if batch in missing | failed_in)
    return replace(switch, missing=incomplete, failures=tuple(failures), documents=to_embed)


def _undone(home: Home, stage: str, batch: str, footer: Footer | None) -> Iterator[StageError | None]:
    """Yield the known failure of each document without current rows, or None if it has not failed."""
    try:
        items = home.plan(stage, batch)
    except TableMissing:
        return
    for item in items:
        record = None if footer is None else footer.items.get(item.item_id)
        if not is_current(record, item.fingerprint):
            yield item.known_failure


# The locks of a run that writes a table.


def lock_tables(
    home: Home, stage: str, batch: str, on_wait: Callable[[Path], None], *, reads: bool = True
) -> LockGroup:
    """Lock the table that is written exclusively, and those that are read shared, so that rows do not change.

    The lock of a family prevents switches; an interrupted switch is finished first.
    """
    read = [home.layout.lock(home.asset(above), batch) for above in GRAPH[stage].reads] if reads else []
    family = [home.layout.family_lock(home.serving_asset(stage))] if GRAPH[stage].has_sets else []
    locks = LockGroup(shared=family + read, exclusive=[home.layout.lock(home.serving_asset(stage), batch)])
    locks.acquire(on_wait)
    while family and home.family(stage).is_interrupted():
        locks.release()
        recover(home, stage)
        locks.acquire(on_wait)
    return locks
