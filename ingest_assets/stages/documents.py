"""Files and acquired artifacts become rows: location, media type and the hash of their bytes."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from ingest_assets.core.errors import DocumentChanged, DocumentMissing, DocumentUnreadable, NotAcquired
from ingest_assets.core.identity import canonical_json, hash_file, sha256_text
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.schemas import DOCUMENTS, TableSpec
from ingest_assets.parsing.media import media_type
from ingest_assets.stages.base import Candidate, Stage

_HEAD_BYTES = 8192  # enough to detect the media type
_FILE_COLUMNS = ("doc_id", "batch", "seq", "source", "content_hash", "size_bytes")
_QUEUE_COLUMNS = ("resolver", "host", "etag", "last_modified", "meta")


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file's entry in the ledger; `path` is absolute."""

    doc_id: str
    batch: str
    seq: int
    source: str
    path: str
    content_hash: str
    size_bytes: int

    def candidate(self) -> Candidate:
        """Return the candidate of this file."""
        facts = [self.content_hash, self.path, self.batch, self.seq]
        input_fingerprint = sha256_text(canonical_json(facts))
        return Candidate(self.doc_id, input_fingerprint, asdict(self), (self.path,), self.size_bytes)


@dataclass(frozen=True, slots=True)
class AcquiredFile(KnownFile):
    """An artifact of the queue whose bytes are stored at `path`, and what its server reported."""

    uri: str
    mime: str
    resolver: str
    host: str | None
    etag: str | None
    last_modified: str | None
    meta: str | None

    def candidate(self) -> Candidate:
        """Return the candidate of this artifact; its meta has all columns of the row."""
        meta = asdict(self)
        input_fingerprint = sha256_text(canonical_json(meta))
        return Candidate(self.doc_id, input_fingerprint, meta, (self.path,), self.size_bytes)


@dataclass(frozen=True, slots=True)
class LostArtifact:
    """An artifact that the queue has abandoned, with the reason."""

    doc_id: str
    category: str
    code: str
    message: str

    def candidate(self) -> Candidate:
        """Return the candidate, which will fail with this reason."""
        meta = asdict(self)
        return Candidate(self.doc_id, sha256_text(canonical_json(meta)), meta)


@dataclass(frozen=True, slots=True)
class DocumentsStage(Stage):
    """One row per file or artifact whose bytes still match the ledger."""

    name: ClassVar[str] = "documents"
    version: ClassVar[str] = "2"
    table: ClassVar[TableSpec] = DOCUMENTS

    def candidates(self, known: Iterable[KnownFile | AcquiredFile | LostArtifact]) -> Iterator[Candidate]:
        """Yield a candidate per entry, in intake order."""
        return (entry.candidate() for entry in known)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Return the document's row, after reading the file again: it can have changed since the scan."""
        meta = item.meta
        if "path" not in meta:
            detail = {"given_up": True, "category": meta["category"], "code": meta["code"]}
            raise NotAcquired(meta["message"], detail=detail)
        path = Path(meta["path"])
        read = _read_stored if "uri" in meta else read_verified  # only acquired artifacts have a URI
        head = read(path, meta["content_hash"])
        row = {name: meta[name] for name in _FILE_COLUMNS} | {name: meta.get(name) for name in _QUEUE_COLUMNS}
        row |= {"uri": meta.get("uri", path.as_uri()), "path": str(path)}
        row |= {"mime": meta.get("mime") or media_type(path.name, head)}
        return pa.Table.from_pylist([row], schema=self.spec.schema)


def _read_stored(path: Path, content_hash: str) -> bytes:
    """Read stored bytes, and remove them if they are damaged, so that the next run fetches them again."""
    try:
        return read_verified(path, content_hash)
    except DocumentChanged:
        path.unlink(missing_ok=True)
        raise DocumentChanged(
            "The stored bytes were damaged and are removed. The next run fetches them again."
        ) from None
    except DocumentMissing:
        raise DocumentMissing("The stored bytes are missing. The next run fetches them again.") from None


def read_verified(path: Path, content_hash: str) -> bytes:
    """Return the first bytes of a file; raise an `ItemError` if it is unreadable or its hash differs."""
    try:
        content_hash_now, head = hash_file(path, _HEAD_BYTES)
    except FileNotFoundError:
        raise DocumentMissing(
            f"{path.name} was removed after the scan. The next scan updates the ledger."
        ) from None
    except OSError as error:
        raise DocumentUnreadable(
            f"{path.name} cannot be read ({error.strerror}). Check its permissions."
        ) from None
    if content_hash_now != content_hash:
        raise DocumentChanged(f"{path.name} changed after the scan. The next scan records the new content.")
    return head
