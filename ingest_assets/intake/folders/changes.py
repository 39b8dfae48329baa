"""How a watched folder differs from what the ledger knows of it. Nothing is written here."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from ingest_assets.core.identity import file_doc_id, hash_file
from ingest_assets.intake.database import in_groups
from ingest_assets.intake.folders.walk import Exclusions, Problem, SeenFile, walk
from ingest_assets.intake.ledger import Document, Ledger, Source
from ingest_assets.intake.schema import documents
from ingest_assets.settings.intake import BatchLimits

_EMPTY = (
    "folder is empty, as that of an unmounted disk would be; its documents are kept. "
    "If they are really gone: INGEST_INTAKE__ACCEPT_EMPTY_FOLDERS=true"
)
_TWIN = "same name as {!r} in another Unicode form; rename one of them"


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
    source: str
    file: SeenFile
    content_hash: str


class Known(NamedTuple):
    """What of a document tells whether its file looks the same; there is one for every file of a folder."""

    doc_id: str
    path: str
    size_bytes: int
    mtime_ns: int
    deleted_at: float | None

    def is_still(self, other: SeenFile | Document) -> bool:
        """True when it lives and nothing that is cheap to see has changed."""
        return self[1:] == (other.path, other.size_bytes, other.mtime_ns, None)


@dataclass(slots=True)
class Changes:
    """How a folder differs; `unseen` documents could not be looked for, and count as there."""

    hashed: list[Hashed] = field(default_factory=list)
    gone: list[Known] = field(default_factory=list)
    unseen: list[Known] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unchanged: int = 0
    waiting: int = 0


def find_changes(
    ledger: Ledger,
    source: Source,
    exclude: Exclusions,
    limits: ScanLimits,
    clock: Callable[[], float] = time.time,
) -> Changes:
    """Compare a folder with the ledger: by size and time first, then by hash; one file is always hashed."""
    known = _known(ledger, source)
    living = [document for document in known.values() if document.deleted_at is None]
    if not _is_there(source.path):
        reason = "folder is not there; its documents are kept as they are"
        return Changes(unseen=living, problems=[Problem(str(source.path), reason, is_folder=True)])
    files, problems = _list(source, exclude, known)
    if living and not files and not problems and not limits.accepts_empty:
        return Changes(unseen=living, problems=[Problem(str(source.path), _EMPTY, is_folder=True)])
    deadline = time.monotonic() + limits.budget_seconds
    changes = Changes(problems=problems)
    for doc_id, file in files.items():
        if file is None:
            changes.unchanged += 1
        elif _is_young(file, limits, clock()) or (changes.hashed and time.monotonic() > deadline):
            changes.waiting += 1
        else:
            _hash_into(changes, source, doc_id, file)
    _tell_missing(changes, [document for document in living if document.doc_id not in files])
    return changes


def _known(ledger: Ledger, source: Source) -> dict[str, Known]:
    columns = [documents.c[name] for name in Known._fields]
    is_file = (documents.c.source == source.name) & documents.c.resolver.is_(None)
    with ledger.database.connect() as connection:
        return {
            row[0]: Known._make(row) for row in connection.execute(sa.select(*columns).where(is_file)).all()
        }


def _is_young(file: SeenFile, limits: ScanLimits, now: float) -> bool:
    """Still being written, perhaps; a file dated in the future is not young, its clock is wrong."""
    return 0 <= now - file.mtime_ns / 1e9 < limits.settle_seconds


def _is_there(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except OSError:
        return False


def _list(
    source: Source, exclude: Exclusions, known: Mapping[str, Known]
) -> tuple[dict[str, SeenFile | None], list[Problem]]:
    """Files by document id; None for one that looks as it did, for there may be very many of them.

    Of two names that differ only in Unicode form, the one known before stays.
    """
    files: dict[str, SeenFile | None] = {}
    problems: list[Problem] = []
    for found in walk(source.path, exclude):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        doc_id = file_doc_id(source.name, found.path)
        before = known.get(doc_id)
        if doc_id in files:
            other = files[doc_id]
            other_path = other.path if other is not None else known[doc_id].path
            is_known = before is not None and before.path == found.path
            kept, twin = (found.path, other_path) if is_known else (other_path, found.path)
            problems.append(Problem(twin, _TWIN.format(kept)))
            if not is_known:
                continue
        files[doc_id] = None if before is not None and before.is_still(found) else found
    return files, problems


def _hash_into(changes: Changes, source: Source, doc_id: str, file: SeenFile) -> None:
    try:
        content_hash, _ = hash_file(source.path / file.path)
    except FileNotFoundError:
        return  # gone between listing and reading: the next scan sees it as it then is
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); check its permissions"
        changes.problems.append(Problem(file.path, reason))
    else:
        changes.hashed.append(Hashed(doc_id, source.name, file, content_hash))


def _tell_missing(changes: Changes, missing: Sequence[Known]) -> None:
    """Unknown is not deleted: what is, or lies below, something that could not be looked at is unseen."""
    paths = {problem.path for problem in changes.problems}
    folders = tuple(problem.path + "/" for problem in changes.problems if problem.is_folder)
    for document in missing:
        is_hidden = document.path in paths or "./" in folders or document.path.startswith(folders)
        (changes.unseen if is_hidden else changes.gone).append(document)


# What a scan does to the ledger: which documents are new, changed or gone, and which only moved.


_COLUMNS = [documents.c[name] for name in Document.__dataclass_fields__]

Move = tuple[Document, Hashed]


@dataclass(frozen=True, slots=True)
class Decisions:
    """Each hashed file is in exactly one of `new`, `known`, `moved` and `refused`.

    `known` files are changed, back again, or only touched. A file with the bytes of a deleted document is
    that document, `moved`; what was deleted earlier at its new place is `replaced`.
    """

    new: list[Hashed]
    known: list[tuple[Document, Hashed]]
    moved: list[Move]
    refused: list[Hashed]
    deleted: list[Document]
    replaced: list[Document]

    def touched(self) -> set[str]:
        """The batches that have to run again; new documents have none yet."""
        known = {before.batch for before, found in self.known if _differs(before, found)}
        moved = {before.batch for before, _ in self.moved}
        return known | moved | {document.batch for document in (*self.deleted, *self.replaced)}

    def hashes(self) -> set[str]:
        """The bytes that somebody has now, or has no longer, or has under another id."""
        before = {document.content_hash for document, _ in (*self.known, *self.moved)}
        now = {file.content_hash for file in (*self.new, *(file for _, file in self.known))}
        return before | now | {document.content_hash for document in self.deleted}


def decide(connection: sa.Connection, found: Sequence[Changes]) -> Decisions:
    """Hold what was found in all folders against the ledger as it is now.

    Another scan may have taken the same files in while these were hashed; under the ledger's lock it is done.
    """
    looked_at = [file for changes in found for file in changes.hashed]
    missing = [known for changes in found for known in changes.gone]
    ids = [file.doc_id for file in looked_at] + [known.doc_id for known in missing]
    rows = {document.doc_id: document for document in read_by(connection, documents.c.doc_id, ids)}
    files = [file for file in looked_at if not _is_fetched(rows.get(file.doc_id))]
    gone = [rows[known.doc_id] for known in missing if _is_as_seen(known, rows.get(known.doc_id))]
    moved = _moves(connection, files, gone, rows)
    left, landed = {before.doc_id for before, _ in moved}, {file.doc_id for _, file in moved}
    staying = {doc_id: document for doc_id, document in rows.items() if doc_id not in left}
    others = [file for file in files if file.doc_id not in landed]
    return Decisions(
        new=[file for file in others if file.doc_id not in staying],
        known=[(staying[file.doc_id], file) for file in others if file.doc_id in staying],
        moved=moved,
        refused=[file for file in looked_at if _is_fetched(rows.get(file.doc_id))],
        deleted=[document for document in gone if document.doc_id not in left],
        replaced=[staying[file.doc_id] for _, file in moved if file.doc_id in staying],
    )


def read_by(connection: sa.Connection, column: sa.Column[str], values: Iterable[str]) -> Iterator[Document]:
    """The documents with one of these values, whatever their number."""
    for some in in_groups(sorted(set(values))):
        rows = connection.execute(sa.select(*_COLUMNS).where(column.in_(some)))
        yield from (Document(*row) for row in rows.all())


def _is_fetched(row: Document | None) -> bool:
    return row is not None and row.resolver is not None


def _is_as_seen(known: Known, row: Document | None) -> bool:
    return row is not None and not row.is_deleted() and known.is_still(row)


def _differs(before: Document, found: Hashed) -> bool:
    same = before.content_hash == found.content_hash and before.path == found.file.path
    return before.is_deleted() or not same


def _moves(
    connection: sa.Connection,
    files: Sequence[Hashed],
    gone: Sequence[Document],
    rows: Mapping[str, Document],
) -> list[Move]:
    """Files without a home of their own, each with the deleted document that has its bytes."""
    homeless = [file for file in files if not _has_home(rows.get(file.doc_id), file)]
    back = {file.doc_id for file in files} - {file.doc_id for file in homeless}
    same_bytes = read_by(connection, documents.c.content_hash, (file.content_hash for file in homeless))
    files_before = (d for d in same_bytes if d.is_deleted() and d.resolver is None)
    return _paired(homeless, [*gone, *(d for d in files_before if d.doc_id not in back)])


def _has_home(row: Document | None, file: Hashed) -> bool:
    """A living document keeps its place whatever its bytes; a deleted one comes back with its own bytes."""
    return row is not None and (not row.is_deleted() or row.content_hash == file.content_hash)


def _paired(files: Sequence[Hashed], free: Sequence[Document]) -> list[Move]:
    """In the order of the files, and of documents by number; those just gone still have rows and go first."""
    by_hash: dict[str, deque[Document]] = defaultdict(deque)
    for document in sorted(free, key=lambda each: (each.is_deleted(), each.seq)):
        by_hash[document.content_hash].append(document)
    return [(by_hash[file.content_hash].popleft(), file) for file in files if by_hash[file.content_hash]]
