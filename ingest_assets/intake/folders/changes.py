"""The differences between watched folders and the ledger. Writes nothing."""

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
    "folder has no file that is not excluded, perhaps because a disk is not mounted; its documents are kept. "
    "If they were deleted, set intake.accept_empty_folders = true"
)
_SAME_NAME = "same name as {!r} in another Unicode form; rename one of them"


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Limits of a scan. With `accepts_empty`, the documents of an empty folder count as deleted."""

    batches: BatchLimits = BatchLimits()
    budget_seconds: float = float("inf")
    settle_seconds: float = 0.0
    accepts_empty: bool = True


@dataclass(frozen=True, slots=True)
class Hashed:
    """A file that is new or looks changed, with the hash of its content."""

    doc_id: str
    source: str
    file: SeenFile
    content_hash: str


class Known(NamedTuple):
    """The columns of a document that tell whether its file looks unchanged."""

    doc_id: str
    path: str
    size_bytes: int
    mtime_ns: int
    deleted_at: float | None

    def is_still(self, other: SeenFile | Document) -> bool:
        """True if the document is not deleted and has the same path, size and time."""
        return self[1:] == (other.path, other.size_bytes, other.mtime_ns, None)


@dataclass(slots=True)
class Changes:
    """The changes in a folder. `unseen` documents could not be checked, and are kept."""

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
    """Compare a folder with the ledger, by size and time, then by hash; at least one file is hashed."""
    columns = [documents.c[name] for name in Known._fields]
    is_file = (documents.c.source == source.name) & documents.c.resolver.is_(None)
    with ledger.database.connect() as connection:
        rows = connection.execute(sa.select(*columns).where(is_file)).all()
    known = {row[0]: Known._make(row) for row in rows}
    living = [document for document in known.values() if document.deleted_at is None]
    try:
        exists = source.path.is_dir()
    except OSError:  # a parent folder cannot be entered
        exists = False
    if not exists:
        reason = "folder does not exist or cannot be opened; its documents are kept"
        if source.origin == "command":
            reason += f". `ingest watch remove {source.name}` stops watching it and removes them"
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
        # A young file may still be written. A time in the future means a wrong clock, not a young file.
        is_young = 0 <= clock() - file.mtime_ns / 1e9 < limits.settle_seconds
        if is_young or (changes.hashed and time.monotonic() > deadline):
            changes.waiting += 1
        else:
            _hash_into(changes, source, doc_id, file)
    # Unreadable files, and files in unreadable folders, are not deleted but unseen.
    paths = {problem.path for problem in problems}
    folders = tuple(problem.path + "/" for problem in problems if problem.is_folder)
    for document in living:
        if document.doc_id not in files:
            is_unreadable = document.path in paths or "./" in folders or document.path.startswith(folders)
            (changes.unseen if is_unreadable else changes.gone).append(document)
    return changes


def _list(
    source: Source, exclude: Exclusions, known: Mapping[str, Known]
) -> tuple[dict[str, SeenFile | None], list[Problem]]:
    """Return files by document id; None for an unchanged file, to save memory.

    Of two names that differ only in Unicode form, the known one wins.
    """
    files: dict[str, SeenFile | None] = {}
    problems: list[Problem] = []
    for file in walk(source.path, exclude):
        if isinstance(file, Problem):
            problems.append(file)
            continue
        doc_id = file_doc_id(source.name, file.path)
        before = known.get(doc_id)
        if doc_id in files:
            other = files[doc_id]
            other_path = other.path if other is not None else known[doc_id].path
            is_known = before is not None and before.path == file.path
            winner, loser = (file.path, other_path) if is_known else (other_path, file.path)
            problems.append(Problem(loser, _SAME_NAME.format(winner)))
            if not is_known:
                continue
        files[doc_id] = None if before is not None and before.is_still(file) else file
    return files, problems


def _hash_into(changes: Changes, source: Source, doc_id: str, file: SeenFile) -> None:
    try:
        content_hash, _ = hash_file(source.path / file.path)
    except FileNotFoundError:
        return  # deleted between listing and reading; the next scan sees it
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); check its permissions"
        changes.problems.append(Problem(file.path, reason))
    else:
        changes.hashed.append(Hashed(doc_id, source.name, file, content_hash))


# Decide from the differences which documents are new, changed, moved or deleted.

Move = tuple[Document, Hashed]


@dataclass(frozen=True, slots=True)
class Decisions:
    """Each hashed file is in exactly one of `new`, `known`, `moved` and `refused`.

    `known` files are changed, restored or only touched. A file with the content of a deleted document is that
    document, `moved`; a document deleted earlier at its new path is `replaced`.
    """

    new: list[Hashed]
    known: list[tuple[Document, Hashed]]
    moved: list[Move]
    refused: list[Hashed]
    deleted: list[Document]
    replaced: list[Document]

    def touched(self) -> set[str]:
        """Return the batches that must run again; new documents have none yet."""
        changed = {
            before.batch
            for before, hashed in self.known
            if before.is_deleted()
            or before.content_hash != hashed.content_hash
            or before.path != hashed.file.path
        }
        moved = {before.batch for before, _ in self.moved}
        return changed | moved | {document.batch for document in (*self.deleted, *self.replaced)}

    def hashes(self) -> set[str]:
        """Return the hashes whose documents are new, changed, moved or deleted."""
        before = {document.content_hash for document, _ in (*self.known, *self.moved)}
        now = {file.content_hash for file in (*self.new, *(file for _, file in self.known))}
        return before | now | {document.content_hash for document in self.deleted}


def decide(connection: sa.Connection, folders: Sequence[Changes]) -> Decisions:
    """Compare the changes of all folders with the ledger as it is now; call it under the ledger's lock.

    Another scan may have entered the same files since these were hashed.
    """
    hashed = [file for changes in folders for file in changes.hashed]
    missing = [known for changes in folders for known in changes.gone]
    ids = [file.doc_id for file in hashed] + [known.doc_id for known in missing]
    rows = {document.doc_id: document for document in _read_by(connection, documents.c.doc_id, ids)}
    queued = {doc_id for doc_id, document in rows.items() if document.resolver is not None}
    files = [file for file in hashed if file.doc_id not in queued]
    gone = [
        rows[known.doc_id]
        for known in missing
        if known.doc_id in rows and not rows[known.doc_id].is_deleted() and known.is_still(rows[known.doc_id])
    ]
    moved = _moves(connection, files, gone, rows)
    old_ids, new_ids = {before.doc_id for before, _ in moved}, {file.doc_id for _, file in moved}
    staying = {doc_id: document for doc_id, document in rows.items() if doc_id not in old_ids}
    others = [file for file in files if file.doc_id not in new_ids]
    return Decisions(
        new=[file for file in others if file.doc_id not in staying],
        known=[(staying[file.doc_id], file) for file in others if file.doc_id in staying],
        moved=moved,
        refused=[file for file in hashed if file.doc_id in queued],
        deleted=[document for document in gone if document.doc_id not in old_ids],
        replaced=[staying[file.doc_id] for _, file in moved if file.doc_id in staying],
    )


def _read_by(connection: sa.Connection, column: sa.Column[str], values: Iterable[str]) -> Iterator[Document]:
    """Yield the documents with one of these values; there can be any number."""
    for group in in_groups(values):
        yield from read_documents(connection, column.in_(group))


def _moves(
    connection: sa.Connection,
    files: Sequence[Hashed],
    gone: Sequence[Document],
    rows: Mapping[str, Document],
) -> list[Move]:
    """Pair files that have no document at their path with deleted documents of the same content.

    An existing document keeps its path, whatever its content; a deleted one is restored when its old content
    reappears at its path. Pairs follow the order of the files and the documents' numbers; newly deleted
    documents, whose tables still have rows, come first.
    """
    unmatched, matched = list[Hashed](), set[str]()
    for file in files:
        row = rows.get(file.doc_id)
        if row is not None and (not row.is_deleted() or row.content_hash == file.content_hash):
            matched.add(file.doc_id)
        else:
            unmatched.append(file)
    same_content = _read_by(connection, documents.c.content_hash, (file.content_hash for file in unmatched))
    earlier = (d for d in same_content if d.is_deleted() and d.resolver is None and d.doc_id not in matched)
    free: dict[str, deque[Document]] = defaultdict(deque)
    for document in sorted([*gone, *earlier], key=lambda document: (document.is_deleted(), document.seq)):
        free[document.content_hash].append(document)
    return [(free[file.content_hash].popleft(), file) for file in unmatched if free[file.content_hash]]
