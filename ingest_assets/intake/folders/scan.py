"""Bringing the ledger up to date with the watched folders, and giving each new document its home batch."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ingest_assets.core.errors import ConfigError
from ingest_assets.intake import batches
from ingest_assets.intake.database import in_groups
from ingest_assets.intake.folders.changes import Changes, Decisions, Hashed, ScanLimits, decide, find_changes
from ingest_assets.intake.folders.walk import Exclusions, Problem, require_folder
from ingest_assets.intake.ledger import Ledger, Source, bump, last_seq
from ingest_assets.intake.queue.acquired import settle
from ingest_assets.intake.schema import batches as batch_table
from ingest_assets.intake.schema import documents, scan_problems

_REFUSED = "its id is that of a queued document; rename the file, or queue the other under another id"
# How exactly `last_seen` is kept: to write it for every file at every look would be most of a look's work.
_SEEN_WITHIN_SECONDS = 3600.0

Watched = Sequence[tuple[Source, Exclusions]]


@dataclass(slots=True)
class ScanReport:
    """What a scan found. `waiting` files are known to be there and are looked at next time.

    `moved` files have the bytes of a document that is gone from elsewhere, and neither is new or deleted.
    """

    new: int = 0
    changed: int = 0
    moved: int = 0
    deleted: int = 0
    restored: int = 0
    unchanged: int = 0
    waiting: int = 0
    batches: set[str] = field(default_factory=set)
    problems: list[tuple[str, Problem]] = field(default_factory=list)


def scan_sources(
    ledger: Ledger,
    watched: Watched,
    limits: ScanLimits,
    clock: Callable[[], float] = time.time,
    *,
    dry_run: bool = False,
) -> ScanReport:
    """Look at folders and bring the ledger up to date, wholly or not at all; a dry run writes nothing.

    All folders first, as a file may have moved from one to another; they share the time that hashing may
    take. A folder that is not there deletes nothing.
    """
    started = time.monotonic()
    found: list[tuple[Source, Changes]] = []
    for source, exclude in watched:
        left = max(0.0, limits.budget_seconds - (time.monotonic() - started))
        changes = find_changes(ledger, source, exclude, replace(limits, budget_seconds=left), clock)
        found.append((source, changes))
    now = clock()
    with ledger.database.connect() if dry_run else ledger.begin() as connection:
        decisions = decide(connection, [changes for _, changes in found])
        for source, changes in found:
            refused = [file for file in decisions.refused if file.source == source.name]
            changes.problems.extend(Problem(file.file.path, _REFUSED) for file in refused)
        new = _new_rows(connection, decisions.new, limits, now)
        touched = decisions.touched() | {row["batch"] for row in new}
        if not dry_run:
            _write(connection, decisions, new, now)
            touched |= settle(connection, decisions.hashes(), now)
            bump(connection, touched)
            for source, changes in found:
                _record_look(connection, source, changes, now)
    return _report(found, decisions, touched)


def _new_rows(
    connection: sa.Connection, files: Sequence[Hashed], limits: ScanLimits, now: float
) -> list[dict[str, Any]]:
    """New documents with their numbers and home batches; a batch is cut from one source."""
    day = datetime.fromtimestamp(now, UTC).date()
    number = batches.next_number(day, connection.scalars(sa.select(batch_table.c.key)))
    seqs = itertools.count(last_seq(connection) + 1)
    rows = []
    for _, group in itertools.groupby(files, key=lambda file: file.source):
        mine = list(group)
        keys = list(batches.cut((file.file.size_bytes for file in mine), limits.batches, day, number))
        number = batches.next_number(day, keys)
        for file, key in zip(mine, keys, strict=True):
            rows.append(_facts(file, now) | {"batch": key, "seq": next(seqs), "first_seen": now})
    return rows


def _facts(file: Hashed, now: float) -> dict[str, Any]:
    """What a file's row says of the file itself."""
    return {
        "doc_id": file.doc_id,
        "source": file.source,
        "path": file.file.path,
        "content_hash": file.content_hash,
        "size_bytes": file.file.size_bytes,
        "mtime_ns": file.file.mtime_ns,
        "last_seen": now,
        "deleted_at": None,
    }


def _write(connection: sa.Connection, decisions: Decisions, new: list[dict[str, Any]], now: float) -> None:
    """Rows that move are taken out before any is put in: one may take the place that another one leaves."""
    movers = {before.doc_id: file for before, file in decisions.moved}
    moved = []  # put in again with the same home and number at another place
    for ids in in_groups([*movers, *(document.doc_id for document in decisions.replaced)]):
        is_one = documents.c.doc_id.in_(ids)
        taken_out = connection.execute(sa.select(documents).where(is_one)).mappings().all()
        connection.execute(documents.delete().where(is_one))
        moved += [
            {**row, **_facts(movers[row["doc_id"]], now)} for row in taken_out if row["doc_id"] in movers
        ]
    gone = [{"row": document.doc_id, "deleted_at": now} for document in decisions.deleted]
    here = [_facts(file, now) | {"row": before.doc_id} for before, file in decisions.known]
    is_row = documents.c.doc_id == sa.bindparam("row")
    for rows in (gone, here):
        if rows:
            connection.execute(documents.update().where(is_row), rows)
    for rows in (moved, new):
        if rows:
            connection.execute(documents.insert(), rows)


def _record_look(connection: sa.Connection, source: Source, changes: Changes, now: float) -> None:
    """Who was seen, unless that is not known of all, and what was not taken in."""
    if not changes.unseen:
        living = (documents.c.source == source.name) & documents.c.deleted_at.is_(None)
        is_old = living & (documents.c.last_seen <= now - _SEEN_WITHIN_SECONDS)
        connection.execute(documents.update().where(is_old).values(last_seen=now))
    connection.execute(scan_problems.delete().where(scan_problems.c.source == source.name))
    for path, reason in {problem.path: problem.reason for problem in changes.problems}.items():
        connection.execute(scan_problems.insert().values(source=source.name, path=path, reason=reason))


def _report(found: Sequence[tuple[Source, Changes]], decisions: Decisions, touched: set[str]) -> ScanReport:
    living = [(before, file) for before, file in decisions.known if not before.is_deleted()]
    changed = sum(before.content_hash != file.content_hash for before, file in living)
    return ScanReport(
        new=len(decisions.new),
        changed=changed,
        moved=len(decisions.moved),
        deleted=len(decisions.deleted),
        restored=len(decisions.known) - len(living),
        unchanged=len(living) - changed + sum(changes.unchanged for _, changes in found),
        waiting=sum(changes.waiting for _, changes in found),
        batches=touched,
        problems=[(source.name, problem) for source, changes in found for problem in changes.problems],
    )


# The watched folders of a home: those in the settings and those given on the command line.


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder of the settings, and what of it is left out."""

    name: str
    path: Path
    exclude: tuple[str, ...] = ()


def watched_sources(ledger: Ledger, folders: Sequence[WatchedFolder]) -> list[Source]:
    """Every source as it is to be looked at now, by name.

    A source that was in the settings once and is not any more is left alone: its documents stay as they are.
    """
    named = {source.name: source for source in ledger.sources() if source.origin == "command"}
    named |= {folder.name: Source(folder.name, folder.path, "settings") for folder in folders}
    return [named[name] for name in sorted(named)]


def register(ledger: Ledger, folders: Sequence[WatchedFolder]) -> None:
    """Make the ledger know the folders of the settings; a folder that moved keeps its documents.

    A new place is taken over only when there is a folder: a slip in the settings, or a disk that is not
    mounted, must not send every document's path into the void.
    """
    known = {source.name: source for source in ledger.sources()}
    watched = watched_sources(ledger, folders)
    for source in watched:
        _require_apart(source, watched)
        before = known.get(source.name)
        if before != source and (before is None or before.path == source.path or source.path.is_dir()):
            ledger.put_source(source, time.time())


def add_folder(ledger: Ledger, path: Path) -> Source:
    """Watch a folder under a name made from its own, unless it is watched already."""
    folder = require_folder(path)
    known = ledger.sources()
    if all(source.path != folder for source in known):
        _require_apart(Source("", folder), known)
    return ledger.add_source(folder, folder.name, time.time())


def scan(
    ledger: Ledger,
    folders: Sequence[WatchedFolder],
    limits: ScanLimits,
    not_documents: frozenset[Path] = frozenset(),
) -> ScanReport:
    """Look at every watched folder once; `not_documents` are folders of our own that may lie inside one."""
    register(ledger, folders)
    return scan_sources(ledger, _with_exclusions(ledger, folders, not_documents), limits)


def preview(
    ledger: Ledger,
    folders: Sequence[WatchedFolder],
    limits: ScanLimits,
    not_documents: frozenset[Path] = frozenset(),
) -> ScanReport:
    """What `scan` would find, with nothing written; folders new to the ledger are looked at too."""
    return scan_sources(ledger, _with_exclusions(ledger, folders, not_documents), limits, dry_run=True)


def _with_exclusions(
    ledger: Ledger, folders: Sequence[WatchedFolder], not_documents: frozenset[Path]
) -> list[tuple[Source, Exclusions]]:
    patterns = {folder.name: folder.exclude for folder in folders}
    return [
        (source, Exclusions(patterns.get(source.name, ()), not_documents))
        for source in watched_sources(ledger, folders)
    ]


def _require_apart(source: Source, others: Sequence[Source]) -> None:
    """Two sources that share files would take in every document twice."""
    for other in others:
        overlaps = source.path.is_relative_to(other.path) or other.path.is_relative_to(source.path)
        if other.name != source.name and overlaps:
            raise ConfigError(
                f"{source.path} and {other.path}, watched as {other.name!r}, share files; "
                "watch only one of them, or use the same name."
            )
