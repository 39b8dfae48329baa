"""How a watched folder differs from what the ledger knows of it. Nothing is written here."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa

from ingest_assets.core.identity import file_doc_id, hash_file
from ingest_assets.intake.database import in_groups
from ingest_assets.intake.folders.walk import Exclusions, Problem, SeenFile, walk
from ingest_assets.intake.ledger import Document, Ledger, Source, read_documents
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
    clock: Callable[[], float],
) -> Changes:
    """Compare a folder with the ledger: by size and time first, then by hash; one file is always hashed."""
    columns = [documents.c[name] for name in Known._fields]
    is_file = (documents.c.source == source.name) & documents.c.resolver.is_(None)
    with ledger.database.connect() as connection:
        rows = connection.execute(sa.select(*columns).where(is_file)).all()
    known = {row[0]: Known._make(row) for row in rows}
    living = [document for document in known.values() if document.deleted_at is None]
    try:
        is_there = source.path.is_dir()
    except OSError:  # a folder above may not be entered
        is_there = False
    if not is_there:
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
            continue
        # Still being written, perhaps; a file dated in the future is not young, its clock is wrong.
        is_young = 0 <= clock() - file.mtime_ns / 1e9 < limits.settle_seconds
        if is_young or (changes.hashed and time.monotonic() > deadline):
            changes.waiting += 1
        else:
            _hash_into(changes, source, doc_id, file)
    # Unknown is not deleted: what is, or lies below, something that could not be looked at is unseen.
    paths = {problem.path for problem in problems}
    folders = tuple(problem.path + "/" for problem in problems if problem.is_folder)
    for document in living:
        if document.doc_id not in files:
            is_hidden = document.path in paths or "./" in folders or document.path.startswith(folders)
            (changes.unseen if is_hidden else changes.gone).append(document)
    return changes


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


# What a scan does to the ledger: which documents are new, changed or gone, and which only moved.

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
        changed = {
            before.batch
            for before, found in self.known
            if before.is_deleted()
            or before.content_hash != found.content_hash
            or before.path != found.file.path
        }
        moved = {before.batch for before, _ in self.moved}
        return changed | moved | {document.batch for document in (*self.deleted, *self.replaced)}

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
    rows = {document.doc_id: document for document in _read_by(connection, documents.c.doc_id, ids)}
    fetched = {doc_id for doc_id, document in rows.items() if document.resolver is not None}
    files = [file for file in looked_at if file.doc_id not in fetched]
    gone = [
        rows[known.doc_id]
        for known in missing
        if known.doc_id in rows and not rows[known.doc_id].is_deleted() and known.is_still(rows[known.doc_id])
    ]
    moved = _moves(connection, files, gone, rows)
    left, landed = {before.doc_id for before, _ in moved}, {file.doc_id for _, file in moved}
    staying = {doc_id: document for doc_id, document in rows.items() if doc_id not in left}
    others = [file for file in files if file.doc_id not in landed]
    return Decisions(
        new=[file for file in others if file.doc_id not in staying],
        known=[(staying[file.doc_id], file) for file in others if file.doc_id in staying],
        moved=moved,
        refused=[file for file in looked_at if file.doc_id in fetched],
        deleted=[document for document in gone if document.doc_id not in left],
        replaced=[staying[file.doc_id] for _, file in moved if file.doc_id in staying],
    )


def _read_by(connection: sa.Connection, column: sa.Column[str], values: Iterable[str]) -> Iterator[Document]:
    """The documents with one of these values, whatever their number."""
    for some in in_groups(values):
        yield from read_documents(connection, column.in_(some))


def _moves(
    connection: sa.Connection,
    files: Sequence[Hashed],
    gone: Sequence[Document],
    rows: Mapping[str, Document],
) -> list[Move]:
    """Files without a home of their own, each with the deleted document that has its bytes.

    A living document keeps its place whatever its bytes; a deleted one comes back with its own bytes. Pairs
    are made in the order of the files, and of documents by number; those just gone still have rows, and go
    first.
    """
    homeless, back = list[Hashed](), set[str]()
    for file in files:
        row = rows.get(file.doc_id)
        if row is not None and (not row.is_deleted() or row.content_hash == file.content_hash):
            back.add(file.doc_id)
        else:
            homeless.append(file)
    same_bytes = _read_by(connection, documents.c.content_hash, (file.content_hash for file in homeless))
    files_before = (d for d in same_bytes if d.is_deleted() and d.resolver is None and d.doc_id not in back)
    free: dict[str, deque[Document]] = defaultdict(deque)
    for document in sorted([*gone, *files_before], key=lambda each: (each.is_deleted(), each.seq)):
        free[document.content_hash].append(document)
    return [(free[file.content_hash].popleft(), file) for file in homeless if free[file.content_hash]]
