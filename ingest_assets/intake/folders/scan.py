"""Update the ledger from the watched folders, and assign new documents to batches."""

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
from ingest_assets.intake.queue.catalogue import update_duplicates
from ingest_assets.intake.schema import batches as batch_table
from ingest_assets.intake.schema import documents, scan_problems, sources

_REFUSED = "a queued document has the same id; rename the file, or queue the document under another id"
# Precision of `last_seen`: writing it for every file in every scan would be most of a scan's work.
_SEEN_WITHIN_SECONDS = 3600.0

Watched = Sequence[tuple[Source, Exclusions]]


@dataclass(slots=True)
class ScanReport:
    """Counts of a scan. `waiting` files are left for the next scan.

    `moved` files have the content of a document that disappeared elsewhere; they are neither new nor deleted.
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
    """Scan folders and update the ledger in one transaction; a dry run writes nothing.

    Reads all folders first, since a file may have moved between them; all share one time budget for hashing.
    A missing folder deletes nothing.
    """
    started = time.monotonic()
    scanned: list[tuple[Source, Changes]] = []
    for source, exclude in watched:
        left = max(0.0, limits.budget_seconds - (time.monotonic() - started))
        changes = find_changes(ledger, source, exclude, replace(limits, budget_seconds=left), clock)
        scanned.append((source, changes))
    now = clock()
    with ledger.database.connect() if dry_run else ledger.begin() as connection:
        decisions = decide(connection, [changes for _, changes in scanned])
        for source, changes in scanned:
            refused = [file for file in decisions.refused if file.source == source.name]
            changes.problems.extend(Problem(file.file.path, _REFUSED) for file in refused)
        new = _new_rows(connection, decisions.new, limits, now)
        touched = decisions.touched() | {row["batch"] for row in new}
        if not dry_run:
            _write(connection, decisions, new, now)
            touched |= update_duplicates(connection, decisions.hashes(), now)
            bump(connection, touched)
            for source, changes in scanned:
                _record_scan(connection, source, changes, now)
    return _report(scanned, decisions, touched)


def _new_rows(
    connection: sa.Connection, files: Sequence[Hashed], limits: ScanLimits, now: float
) -> list[dict[str, Any]]:
    """Return the rows of new documents with numbers and batches; a batch holds files of one source."""
    day = datetime.fromtimestamp(now, UTC).date()
    number = batches.next_number(day, connection.scalars(sa.select(batch_table.c.key)))
    seqs = itertools.count(last_seq(connection) + 1)
    rows = []
    for _, group in itertools.groupby(files, key=lambda file: file.source):
        members = list(group)
        keys = list(batches.cut((file.file.size_bytes for file in members), limits.batches, day, number))
        number = batches.next_number(day, keys)
        for file, key in zip(members, keys, strict=True):
            rows.append(_file_columns(file, now) | {"batch": key, "seq": next(seqs), "first_seen": now})
    return rows


def _file_columns(file: Hashed, now: float) -> dict[str, Any]:
    """Return the columns of a document that describe its file."""
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
    """Write the decisions. Removes all moved rows before it inserts any: one may take another's old path."""
    files = {before.doc_id: file for before, file in decisions.moved}
    moved = []  # inserted again with the same batch and number under another id
    for ids in in_groups([*files, *(document.doc_id for document in decisions.replaced)]):
        is_member = documents.c.doc_id.in_(ids)
        old_rows = connection.execute(sa.select(documents).where(is_member)).mappings().all()
        connection.execute(documents.delete().where(is_member))
        moved += [
            {**row, **_file_columns(files[row["doc_id"]], now)} for row in old_rows if row["doc_id"] in files
        ]
    deleted = [{"row": document.doc_id, "deleted_at": now} for document in decisions.deleted]
    known = [_file_columns(file, now) | {"row": before.doc_id} for before, file in decisions.known]
    is_row = documents.c.doc_id == sa.bindparam("row")
    for rows in (deleted, known):
        if rows:
            connection.execute(documents.update().where(is_row), rows)
    for rows in (moved, new):
        if rows:
            connection.execute(documents.insert(), rows)


def _record_scan(connection: sa.Connection, source: Source, changes: Changes, now: float) -> None:
    """Store `last_seen`, unless some documents could not be checked, and the problems."""
    if not changes.unseen:
        living = (documents.c.source == source.name) & documents.c.deleted_at.is_(None)
        is_old = living & (documents.c.last_seen <= now - _SEEN_WITHIN_SECONDS)
        connection.execute(documents.update().where(is_old).values(last_seen=now))
    connection.execute(scan_problems.delete().where(scan_problems.c.source == source.name))
    for path, reason in {problem.path: problem.reason for problem in changes.problems}.items():
        connection.execute(scan_problems.insert().values(source=source.name, path=path, reason=reason))


def _report(scanned: Sequence[tuple[Source, Changes]], decisions: Decisions, touched: set[str]) -> ScanReport:
    living = [(before, file) for before, file in decisions.known if not before.is_deleted()]
    changed = sum(before.content_hash != file.content_hash for before, file in living)
    return ScanReport(
        new=len(decisions.new),
        changed=changed,
        moved=len(decisions.moved),
        deleted=len(decisions.deleted),
        restored=len(decisions.known) - len(living),
        unchanged=len(living) - changed + sum(changes.unchanged for _, changes in scanned),
        waiting=sum(changes.waiting for _, changes in scanned),
        batches=touched,
        problems=[(source.name, problem) for source, changes in scanned for problem in changes.problems],
    )


# The watched folders of a home: from the settings and from the command line.


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder in the settings, with its exclude patterns."""

    name: str
    path: Path
    exclude: tuple[str, ...] = ()


def watched_sources(ledger: Ledger, folders: Sequence[WatchedFolder]) -> list[Source]:
    """Return the sources to scan, ordered by name.

    A source removed from the settings is not scanned; its documents stay as they are.
    """
    named = {source.name: source for source in ledger.sources() if source.origin == "command"}
    named |= {folder.name: Source(folder.name, folder.path, "settings") for folder in folders}
    return [named[name] for name in sorted(named)]


def register(ledger: Ledger, folders: Sequence[WatchedFolder]) -> None:
    """Enter the folders of the settings in the ledger; a folder with a new path keeps its documents.

    A new path is stored only if the folder exists: a typo in the settings, or an unmounted disk, must not
    break the path of every document.
    """
    known = {source.name: source for source in ledger.sources()}
    watched = watched_sources(ledger, folders)
    for source in watched:
        _require_disjoint(source, watched)
        before = known.get(source.name)
        if before == Source(source.name, source.path, "command"):
            continue  # stays watched when its section is removed from the settings
        if before != source and (before is None or before.path == source.path or source.path.is_dir()):
            ledger.put_source(source, time.time())


def add_folder(ledger: Ledger, path: Path) -> Source:
    """Watch a folder under a name derived from its own, unless it is watched already."""
    folder = require_folder(path)
    watched = [source for source in ledger.sources() if source.origin != "removed"]
    if all(source.path != folder for source in watched):
        _require_disjoint(Source("", folder), watched)
    return ledger.add_source(folder, folder.name, time.time())


def remove_folder(ledger: Ledger, name: str, now: float, *, keeps_documents: bool) -> int:
    """Stop watching a folder. Return how many of its documents leave the tables with the next run."""
    is_living = (
        (documents.c.source == name) & documents.c.resolver.is_(None) & documents.c.deleted_at.is_(None)
    )
    with ledger.begin() as connection:
        connection.execute(sources.update().where(sources.c.name == name).values(origin="removed"))
        if keeps_documents:
            return 0
        columns = (documents.c.batch, documents.c.content_hash)
        rows = connection.execute(sa.select(*columns).where(is_living)).all()
        connection.execute(documents.update().where(is_living).values(deleted_at=now))
        touched = update_duplicates(connection, {row.content_hash for row in rows}, now)
        bump(connection, touched | {row.batch for row in rows})
        return len(rows)


def scan(
    ledger: Ledger,
    folders: Sequence[WatchedFolder],
    limits: ScanLimits,
    skipped_folders: frozenset[Path] = frozenset(),
) -> ScanReport:
    """Scan every watched folder once; `skipped_folders` are the product's own folders, which are skipped."""
    register(ledger, folders)
    return scan_sources(ledger, _with_exclusions(ledger, folders, skipped_folders), limits)


def preview(
    ledger: Ledger,
    folders: Sequence[WatchedFolder],
    limits: ScanLimits,
    skipped_folders: frozenset[Path] = frozenset(),
) -> ScanReport:
    """Return what `scan` would report, without writing; includes folders new to the ledger."""
    return scan_sources(ledger, _with_exclusions(ledger, folders, skipped_folders), limits, dry_run=True)


def _with_exclusions(
    ledger: Ledger, folders: Sequence[WatchedFolder], skipped_folders: frozenset[Path]
) -> list[tuple[Source, Exclusions]]:
    patterns = {folder.name: folder.exclude for folder in folders}
    return [
        (source, Exclusions(patterns.get(source.name, ()), skipped_folders))
        for source in watched_sources(ledger, folders)
    ]


def _require_disjoint(source: Source, others: Sequence[Source]) -> None:
    """Raise `ConfigError` for sources that share files, which would be ingested twice."""
    for other in others:
        overlaps = source.path.is_relative_to(other.path) or other.path.is_relative_to(source.path)
        if other.name == source.name or not overlaps:
            continue
        if other.path == source.path:
            names = " and ".join(sorted((repr(source.name), repr(other.name))))
            raise ConfigError(f"{source.path}: watched under two names, {names}. Use one of them.")
        raise ConfigError(
            f"{source.path} and {other.path}, watched as {other.name!r}, share files; watch only one of them."
        )
