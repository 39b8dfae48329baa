"""Switching models: when the set that is being made is whole, it takes the place of the one that serves."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home
from ingest_assets.core.errors import StageError, TableMissing, is_for_good
from ingest_assets.core.items import is_current
from ingest_assets.storage.locks import FileLock, HeldLocks
from ingest_assets.storage.model_sets import SetMark, prune
from ingest_assets.storage.parquet import Footer, read_footer

# Batches named in one line.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Building:
    """A set that is made beside the one that serves: what it lacks, and the failures that hold it back.

    One without a row serves nobody. Who takes its place `replaces_nothing`, and need not be whole for that.
    """

    stage: str
    old: SetMark
    new: SetMark
    batches: int
    missing: tuple[str, ...]
    holding: tuple[StageError, ...] = ()
    documents: int = 0
    replaces_nothing: bool = False

    def can_serve(self) -> bool:
        """True when nothing is lost if it takes the place of the one that serves."""
        return self.replaces_nothing or (not self.missing and not self.holding)

    def as_object(self) -> dict[str, Any]:
        """For programs."""
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
                {"doc_id": e.item_id, "code": e.code, "message": e.message} for e in self.holding
            ],
        }

    def as_line(self) -> str:
        """For people."""
        old, new = self.old.name_beside(self.new), self.new.name_beside(self.old)
        when = f"{old} serves until {new} is complete"
        if self.replaces_nothing:
            when = f"{old} has no rows, so {new} serves as soon as no other run writes"
        done = self.batches - len(self.missing)
        line = f"{self.stage}: {when}: {done} of {self.batches} batches done"
        if self.missing:
            more = ", …" if len(self.missing) > _SHOWN else ""
            line += f", missing {', '.join(self.missing[:_SHOWN])}{more}"
        if self.holding:
            first, count = self.holding[0], len(self.holding)
            failed = f"{count} failed, first {first.item_id} [{first.code}] {first.message.rstrip('.')}"
            if not self.replaces_nothing:
                failed = f"held back by {failed} (`embeddings.switch_without` lets so many go)"
            line += f"; {failed}"
        return f"{line}."


def building(home: Home, stage: str, *, looks_closely: bool = True) -> Building | None:
    """What a family's new set lacks; None when the set of the settings serves.

    Unless it looks closely, it is content to find a batch without a table, or none to be lost.
    """
    family, mark = home.family(stage), home.set_marks[stage]
    current = family.current()
    if current is None or current.set == mark.set:
        return None
    asset, above = home.asset(stage), [home.asset(name) for name in GRAPH[stage].reads]
    batches = []
    for batch in home.ledger.batches():
        # One with something to embed, or one that the serving set has rows of.
        has_input = all(home.layout.table(name, batch).is_file() for name in above)
        if has_input or home.layout.table(home.serving(stage), batch).is_file():
            batches.append(batch)
    without = [batch for batch in batches if not home.layout.table(asset, batch).is_file()]
    is_empty = not family.has_rows()
    found = Building(stage, current, mark, len(batches), tuple(without), replaces_nothing=is_empty)
    is_clear = is_empty or bool(without)
    return found if is_clear and not looks_closely else _looked_at(home, found, batches)


def buildings(home: Home) -> list[Building]:
    """All sets that are being made."""
    return [found for stage in families(home) if (found := building(home, stage)) is not None]


def families(home: Home, among: Iterable[str] = tuple(GRAPH)) -> list[str]:
    """The stages, as configured, that make an embedding family."""
    return [stage for stage in among if GRAPH[stage].has_sets and stage in home.stages]


def served(home: Home, among: Iterable[str] = tuple(GRAPH)) -> dict[str, SetMark]:
    """Of each family that has rows, the set that readers see now."""
    found = {stage: home.family(stage).served() for stage in families(home, among)}
    return {stage: mark for stage, mark in found.items() if mark is not None}


def cut_over(home: Home, stage: str, say: Callable[[str], None]) -> Building | None:
    """Let the new set serve if nothing is lost by that and nobody writes; one that still waits is given, and
    said."""
    family = home.family(stage)
    recover(home, stage)
    found = building(home, stage, looks_closely=False)
    if found is None:
        return None
    lock = FileLock(home.layout.family_lock(family.asset))
    if found.can_serve() and lock.try_acquire():
        try:
            again = building(home, stage, looks_closely=not found.replaces_nothing)
            if again is not None and again.can_serve():
                family.cut_over(again.new)
                new, old = again.new.name_beside(again.old), again.old
                became = f"{old.name} is removed"
                if old.set in family.beside():
                    became = f"{old.name} is kept as {family.asset}@{old.set}"
                say(f"{stage}: {new} serves from now on; {became}.")
            found = building(home, stage, looks_closely=False)
        finally:
            lock.release()
    if found is not None:
        say(found.as_line())
    return found


def take_empty_place(home: Home, stage: str, say: Callable[[str], None]) -> None:
    """Before a set is made: let it serve from its first row on where another one has the place, but no row.

    While another run writes it is made beside, and takes the place afterwards.
    """
    family = home.family(stage)
    current = family.current()
    if current is not None and current.set != home.set_marks[stage].set and not family.has_rows():
        cut_over(home, stage, say)


def recover(home: Home, stage: str) -> None:
    """Finish what somebody was killed at."""
    family = home.family(stage)
    if family.is_torn():
        lock = FileLock(home.layout.family_lock(family.asset))
        lock.acquire()
        try:
            family.recover()
        finally:
            lock.release()


def remove_abandoned(home: Home, stage: str, before: float) -> list[str]:
    """Remove sets that neither serve, are asked for, nor served before, and were left alone since then."""
    family = home.family(stage)
    lock = FileLock(home.layout.family_lock(family.asset))
    if not family.beside() or not lock.try_acquire():
        return []
    try:
        current = family.current() or SetMark("")
        kept = {home.set_marks[stage].set, current.previous} - {current.set}
        alive = {each for each in family.beside() if family.touched_at(each) >= before}
        return family.remove_all_but(kept | alive)
    finally:
        lock.release()


def prune_others(home: Home, stage: str, batch: str) -> None:
    """Take out of a family's other sets what is not there any more.

    Out of those that do not serve, also what is chunked in another way. The caller holds the batch's lock,
    and the one of its chunks.
    """
    family, spec_now = home.family(stage), home.spec(stage)
    for asset in family.tables_of(batch):
        if asset != spec_now.asset:
            chunks = home.table(GRAPH[stage].reads[0], batch)
            spec = replace(spec_now, asset=asset)
            prune(home.layout, spec, batch, chunks, serves=asset == family.asset)


def prune_unwanted(home: Home, above: str, batch: str) -> None:
    """Take documents that are not there any more out of families that the settings have left off.

    Nobody makes their tables again, and what was deleted must be found nowhere. `above` is the stage that
    they read; the caller holds the lock of its table.
    """
    for stage, node in GRAPH.items():
        if not node.has_sets or stage in home.graph or node.reads[0] != above:
            continue
        lock = FileLock(home.layout.lock(home.serving(stage), batch))
        lock.acquire()
        try:
            for asset in home.family(stage).tables_of(batch):
                spec = replace(node.table, asset=asset)
                prune(home.layout, spec, batch, home.table(node.reads[0], batch), serves=True)
        finally:
            lock.release()


def _looked_at(home: Home, found: Building, batches: list[str]) -> Building:
    """What a further run would try again holds the set back: it must not cost what the old one has.

    Unless so few documents have failed that the settings let them go.
    """
    left, done, given_up, holding, missing, failed_in = 0, 0, [], [], set(), set()
    for batch in batches:
        footer = read_footer(home.layout.table(home.asset(found.stage), batch))
        errors = list(_undone(home, found.stage, batch, footer))
        failed = [error for error in errors if error is not None and not is_for_good(error)]
        untried = errors.count(None)
        left += untried + len(failed)
        given_up += [error for error in errors if error is not None and is_for_good(error)]
        holding += failed
        done += 0 if footer is None else len(footer.items)
        read = [home.layout.table(home.asset(above), batch) for above in GRAPH[found.stage].reads]
        if footer is None or untried or any(read_footer(path) is None for path in read):
            missing.add(batch)
        if failed:
            failed_in.add(batch)
    if not done:
        holding += given_up  # a set without a row must not replace one
    elif len(holding) <= home.settings.embeddings.switch_without:
        holding, failed_in = [], set()
    lacking = tuple(batch for batch in batches if batch in missing | failed_in)
    return replace(found, missing=lacking, holding=tuple(holding), documents=left)


def _undone(home: Home, stage: str, batch: str, footer: Footer | None) -> Iterator[StageError | None]:
    """Of each document without rows why it has failed as it is now, if it has."""
    try:
        items = home.plan(stage, batch)
    except TableMissing:
        return
    for item in items:
        held = None if footer is None else footer.items.get(item.item_id)
        if not is_current(held, item.fingerprint):
            yield item.known_failure


# The locks of those who write a table.


def held_locks(
    home: Home, stage: str, batch: str, on_wait: Callable[[Path], None], *, reads: bool = True
) -> HeldLocks:
    """Alone on the table that is written, shared on those that are read: rows must not move underneath.

    In a family no set changes its place meanwhile, and what somebody was killed at is finished.
    """
    read = [home.layout.lock(home.asset(above), batch) for above in GRAPH[stage].reads] if reads else []
    family = [home.layout.family_lock(home.serving(stage))] if GRAPH[stage].has_sets else []
    locks = HeldLocks(shared=family + read, exclusive=[home.layout.lock(home.serving(stage), batch)])
    locks.acquire(on_wait)
    while family and home.family(stage).is_torn():
        locks.release()
        recover(home, stage)
        locks.acquire(on_wait)
    return locks
