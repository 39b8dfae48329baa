"""What a scan does to the ledger: which documents are new, changed or gone, and which only moved."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from ingest_assets.intake.changes import Changes, Hashed, Known
from ingest_assets.intake.database import in_groups
from ingest_assets.intake.ledger import Document
from ingest_assets.intake.schema import documents

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
