"""Finding new, changed and deleted files, and giving each new document its home batch."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from ingest_assets.intake import batches
from ingest_assets.intake.folders import Exclusions, Problem, SeenFile, walk
from ingest_assets.intake.ledger import (
    Document,
    Ledger,
    Source,
    bump,
    last_seq,
    read_documents,
    replace_problems,
)
from ingest_assets.intake.schema import batches as batch_table
from ingest_assets.intake.schema import documents
from ingest_assets.model.identity import file_doc_id, hash_file
from ingest_assets.model.options import BatchLimits

_EMPTY = (
    "folder is empty, as that of an unmounted disk would be; its documents are kept. "
    "If they are really gone: INGEST_INTAKE__ACCEPT_EMPTY_FOLDERS=true"
)


@dataclass(slots=True)
class ScanReport:
    """What a scan found. `waiting` files are known to be there and are looked at next time."""

    new: int = 0
    changed: int = 0
    deleted: int = 0
    restored: int = 0
    unchanged: int = 0
    waiting: int = 0
    batches: set[str] = field(default_factory=set)
    problems: list[tuple[str, Problem]] = field(default_factory=list)

    def has_changes(self) -> bool:
        return bool(self.new or self.changed or self.deleted or self.restored)


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """How a scan cuts batches, when it stops hashing, and whether it believes an empty folder."""

    batches: BatchLimits = BatchLimits()
    budget_seconds: float = float("inf")
    settle_seconds: float = 0.0
    accepts_empty: bool = True


@dataclass(frozen=True, slots=True)
class Hashed:
    """A file that looked new or different, and the hash of its bytes."""

    doc_id: str
    file: SeenFile
    content_hash: str


@dataclass(slots=True)
class Changes:
    """How a folder differs from what the ledger knows of it."""

    hashed: list[Hashed] = field(default_factory=list)
    gone: list[Document] = field(default_factory=list)
    unseen: list[Document] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unchanged: int = 0
    waiting: int = 0


def scan_source(
    ledger: Ledger,
    source: Source,
    exclude: Exclusions,
    limits: ScanLimits,
    report: ScanReport,
    clock: Callable[[], float] = time.time,
) -> None:
    """Bring the ledger up to date with one folder. A folder that is not there deletes nothing."""
    changes = find_changes(ledger, source, exclude, limits, clock)
    _store(ledger, source, changes, limits, report, clock())
    _note(changes, source, report)


def preview_source(
    ledger: Ledger, source: Source, exclude: Exclusions, limits: ScanLimits, report: ScanReport
) -> None:
    """Say what a scan would find, and write nothing."""
    known = {document.doc_id: document for document in ledger.documents(source=source.name)}
    changes = find_changes(ledger, source, exclude, limits)
    for hashed in changes.hashed:
        before = known.get(hashed.doc_id)
        if before is None:
            report.new += 1
        else:
            _count(before, hashed, report)
            report.batches.add(before.batch)
    report.deleted += len(changes.gone)
    report.batches |= {document.batch for document in changes.gone}
    _note(changes, source, report)


def find_changes(
    ledger: Ledger,
    source: Source,
    exclude: Exclusions,
    limits: ScanLimits,
    clock: Callable[[], float] = time.time,
) -> Changes:
    """Compare a folder with the ledger: by size and time first, then by hash; one file is always hashed."""
    known = {document.doc_id: document for document in ledger.documents(source=source.name)}
    living = [document for document in known.values() if not document.is_deleted()]
    if not _is_there(source.path):
        reason = "folder is not there; its documents are kept as they are"
        return Changes(unseen=living, problems=[Problem(str(source.path), reason, is_folder=True)])
    files, problems = _list(source, exclude, known)
    if living and not files and not problems and not limits.accepts_empty:
        return Changes(unseen=living, problems=[Problem(str(source.path), _EMPTY, is_folder=True)])
    deadline = time.monotonic() + limits.budget_seconds
    changes = Changes(problems=problems)
    for doc_id, file in files.items():
        before = known.get(doc_id)
        if before is not None and not before.is_deleted() and _looks_same(before, file):
            changes.unchanged += 1
        elif _is_young(file, limits, clock()) or (changes.hashed and time.monotonic() > deadline):
            changes.waiting += 1
        else:
            _hash_into(changes, source, doc_id, file)
    missing = [document for document in living if document.doc_id not in files]
    changes.unseen = [document for document in missing if _is_hidden(document, problems)]
    changes.gone = [document for document in missing if not _is_hidden(document, problems)]
    return changes


def _is_young(file: SeenFile, limits: ScanLimits, now: float) -> bool:
    """Still being written, perhaps; a file dated in the future is not young, its clock is wrong."""
    return 0 <= now - file.mtime_ns / 1e9 < limits.settle_seconds


def _is_there(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except OSError:
        return False


def _list(
    source: Source, exclude: Exclusions, known: Mapping[str, Document]
) -> tuple[dict[str, SeenFile], list[Problem]]:
    """Files by document id. Of two names that differ only in Unicode form, the one known before stays."""
    files: dict[str, SeenFile] = {}
    problems: list[Problem] = []
    for found in walk(source.path, exclude):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        doc_id = file_doc_id(source.name, found.path)
        if (other := files.get(doc_id)) is None:
            files[doc_id] = found
            continue
        is_known = doc_id in known and known[doc_id].path == found.path
        files[doc_id], twin = (found, other) if is_known else (other, found)
        reason = f"same name as {files[doc_id].path!r} in another Unicode form; rename one of them"
        problems.append(Problem(twin.path, reason))
    return files, problems


def _looks_same(before: Document, file: SeenFile) -> bool:
    return (before.size_bytes, before.mtime_ns, before.path) == (file.size_bytes, file.mtime_ns, file.path)


def _hash_into(changes: Changes, source: Source, doc_id: str, file: SeenFile) -> None:
    try:
        changes.hashed.append(Hashed(doc_id, file, hash_file(source.path / file.path)[0]))
    except FileNotFoundError:
        return  # gone between listing and reading: the next scan sees it as it then is
    except OSError as error:
        changes.problems.append(
            Problem(file.path, f"cannot be read ({error.strerror}); check its permissions")
        )


def _is_hidden(document: Document, problems: Sequence[Problem]) -> bool:
    """True when the document's file, or a folder above it, could not be looked at: unknown is not deleted."""
    folders = [p.path for p in problems if p.is_folder]
    below = any(folder == "." or document.path.startswith(folder + "/") for folder in folders)
    return below or any(p.path == document.path for p in problems)


def _store(
    ledger: Ledger, source: Source, changes: Changes, limits: ScanLimits, report: ScanReport, now: float
) -> None:
    with ledger.begin() as connection:
        # Read again under the write lock: another scan may have taken these files in while we hashed.
        known = {d.doc_id: d for d in read_documents(connection, source=source.name)}
        old = [h for h in changes.hashed if h.doc_id in known]
        new = [h for h in changes.hashed if h.doc_id not in known]
        touched = {known[h.doc_id].batch for h in old if _update(connection, known[h.doc_id], h, report, now)}
        touched |= _insert(connection, source, new, limits, now)
        touched |= _delete(connection, changes.gone, now)
        bump(connection, touched)
        if not changes.unseen:  # otherwise who was seen is not known for all, and nobody needs it so exactly
            living = (documents.c.source == source.name) & documents.c.deleted_at.is_(None)
            connection.execute(documents.update().where(living).values(last_seen=now))
        replace_problems(connection, source.name, [(p.path, p.reason) for p in changes.problems])
    report.new += len(new)
    report.deleted += len(changes.gone)
    report.batches |= touched


def _note(changes: Changes, source: Source, report: ScanReport) -> None:
    report.unchanged += changes.unchanged
    report.waiting += changes.waiting
    report.problems.extend((source.name, problem) for problem in changes.problems)


def _delete(connection: sa.Connection, gone: Sequence[Document], now: float) -> set[str]:
    for document in gone:
        row = documents.c.doc_id == document.doc_id
        connection.execute(documents.update().where(row).values(deleted_at=now))
    return {document.batch for document in gone}


def _update(
    connection: sa.Connection, before: Document, found: Hashed, report: ScanReport, now: float
) -> bool:
    """Record a known document as it is now; True when its batch has to run again."""
    connection.execute(
        documents.update()
        .where(documents.c.doc_id == before.doc_id)
        .values(
            path=found.file.path,
            content_hash=found.content_hash,
            size_bytes=found.file.size_bytes,
            mtime_ns=found.file.mtime_ns,
            last_seen=now,
            deleted_at=None,
        )
    )
    _count(before, found, report)
    same = before.content_hash == found.content_hash and before.path == found.file.path
    return before.is_deleted() or not same


def _count(before: Document, found: Hashed, report: ScanReport) -> None:
    if before.is_deleted():
        report.restored += 1
    elif before.content_hash != found.content_hash:
        report.changed += 1
    else:
        report.unchanged += 1


def _insert(
    connection: sa.Connection, source: Source, found: Sequence[Hashed], limits: ScanLimits, now: float
) -> set[str]:
    day = datetime.fromtimestamp(now, UTC).date()
    existing = connection.scalars(sa.select(batch_table.c.key)).all()
    first = batches.next_number(day, existing)
    keys = list(batches.cut((h.file.size_bytes for h in found), limits.batches, day, first))
    seq = last_seq(connection)
    rows = [
        {
            "doc_id": h.doc_id,
            "source": source.name,
            "path": h.file.path,
            "content_hash": h.content_hash,
            "size_bytes": h.file.size_bytes,
            "mtime_ns": h.file.mtime_ns,
            "batch": key,
            "seq": seq + number,
            "first_seen": now,
            "last_seen": now,
        }
        for number, (h, key) in enumerate(zip(found, keys, strict=True), start=1)
    ]
    if rows:
        connection.execute(documents.insert(), rows)
    return set(keys)
