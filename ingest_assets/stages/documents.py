"""Files and acquired artifacts become rows: where they are, what they are, and the hash of their bytes."""

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

_HEAD_BYTES = 8192  # from which the media type is told
_GIVEN = ("doc_id", "batch", "seq", "source", "content_hash", "size_bytes")
_OF_THE_QUEUE = ("resolver", "host", "etag", "last_modified", "meta")


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What the ledger says of a file; `path` is absolute."""

    doc_id: str
    batch: str
    seq: int
    source: str
    path: str
    content_hash: str
    size_bytes: int

    def candidate(self) -> Candidate:
        """What the stage could work on."""
        facts = [self.content_hash, self.path, self.batch, self.seq]
        upstream = sha256_text(canonical_json(facts))
        return Candidate(self.doc_id, upstream, asdict(self), (self.path,), self.size_bytes)


@dataclass(frozen=True, slots=True)
class AcquiredFile(KnownFile):
    """An artifact of the queue whose bytes rest at `path`, and what its server said of them."""

    uri: str
    mime: str
    resolver: str
    host: str | None
    etag: str | None
    last_modified: str | None
    meta: str | None

    def candidate(self) -> Candidate:
        """What the stage could work on; all it will write is known already."""
        meta = asdict(self)
        upstream = sha256_text(canonical_json(meta))
        return Candidate(self.doc_id, upstream, meta, (self.path,), self.size_bytes)


@dataclass(frozen=True, slots=True)
class LostArtifact:
    """An artifact that the queue has given up, and why."""

    doc_id: str
    category: str
    code: str
    message: str

    def candidate(self) -> Candidate:
        """What the stage will report as failed."""
        meta = asdict(self)
        return Candidate(self.doc_id, sha256_text(canonical_json(meta)), meta)


@dataclass(frozen=True, slots=True)
class DocumentsStage(Stage):
    """One row per file or artifact whose bytes are still what the ledger says they are."""

    name: ClassVar[str] = "documents"
    version: ClassVar[str] = "2"
    table: ClassVar[TableSpec] = DOCUMENTS

    def candidates(self, known: Iterable[KnownFile | AcquiredFile | LostArtifact]) -> Iterator[Candidate]:
        """One each, in intake order."""
        return (each.candidate() for each in known)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Read the bytes once more: a file that vanished or changed since the scan must not slip through."""
        meta = item.meta
        if "path" not in meta:
            why = {"given_up": True, "category": meta["category"], "code": meta["code"]}
            raise NotAcquired(meta["message"], detail=why)
        path = Path(meta["path"])
        read = _read_stored if "uri" in meta else read_verified  # only what the queue acquired has a URI
        head = read(path, meta["content_hash"])
        row = {name: meta[name] for name in _GIVEN} | {name: meta.get(name) for name in _OF_THE_QUEUE}
        row |= {"uri": meta.get("uri", path.as_uri()), "path": str(path)}
        row |= {"mime": meta.get("mime") or media_type(path.name, head)}
        return pa.Table.from_pylist([row], schema=self.spec.schema)


def _read_stored(path: Path, content_hash: str) -> bytes:
    """Bytes in the store change only when they are damaged; without them, they are acquired again."""
    try:
        return read_verified(path, content_hash)
    except DocumentChanged:
        path.unlink(missing_ok=True)
        raise DocumentChanged(
            "Its stored bytes were damaged and are removed; the next run gets it anew."
        ) from None
    except DocumentMissing:
        raise DocumentMissing("Its stored bytes are gone; the next run gets it anew.") from None


def read_verified(path: Path, content_hash: str) -> bytes:
    """The first bytes of a file whose content has the hash expected; otherwise an error that says why."""
    try:
        content_hash_now, head = hash_file(path, _HEAD_BYTES)
    except FileNotFoundError:
        raise DocumentMissing(
            f"{path.name} vanished after the folder was scanned; the next scan settles it."
        ) from None
    except OSError as error:
        raise DocumentUnreadable(
            f"{path.name} cannot be read ({error.strerror}); check its permissions."
        ) from None
    if content_hash_now != content_hash:
        raise DocumentChanged(
            f"{path.name} changed after the folder was scanned; the next scan takes the new bytes."
        )
    return head
