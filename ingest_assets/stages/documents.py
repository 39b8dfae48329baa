"""Files of a watched folder become rows: where they are, what they are, and the hash of their bytes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from ingest_assets.model.errors import DocumentChanged, DocumentMissing, DocumentUnreadable
from ingest_assets.model.identity import canonical_json, hash_file, sha256_text
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import DOCUMENTS, TableSpec
from ingest_assets.parsing.media import media_type
from ingest_assets.stages.stage import Candidate

_HEAD = 8192


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


@dataclass(frozen=True, slots=True)
class DocumentsStage:
    """One row per file that is still what the ledger says it is."""

    name: ClassVar[str] = "documents"
    version: ClassVar[str] = "1"
    spec: ClassVar[TableSpec] = DOCUMENTS
    preload: ClassVar[tuple[str, ...]] = ()

    def config(self) -> Mapping[str, Any]:
        return {}

    def libraries(self) -> Mapping[str, str]:
        return {}

    def footer(self) -> Mapping[str, str]:
        return {}

    def candidates(self, files: Iterable[KnownFile]) -> Iterator[Candidate]:
        """One per file, in intake order."""
        for file in files:
            facts = [file.content_hash, file.path, file.batch, file.seq]
            meta = {name: getattr(file, name) for name in KnownFile.__dataclass_fields__}
            yield Candidate(
                file.doc_id, sha256_text(canonical_json(facts)), meta, (file.path,), file.size_bytes
            )

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Read the bytes once more: a file that vanished or changed since the scan must not slip through."""
        path = Path(item.meta["path"])
        head = read_verified(path, item.meta["content_hash"])
        row = {
            name: item.meta[name]
            for name in ("doc_id", "batch", "seq", "source", "content_hash", "size_bytes")
        }
        row |= {"uri": path.as_uri(), "path": str(path), "mime": media_type(path.name, head)}
        return pa.Table.from_pylist([row], schema=self.spec.schema)


def read_verified(path: Path, content_hash: str) -> bytes:
    """The first bytes of a file whose content has the hash expected; otherwise an error that says why."""
    try:
        found, head = hash_file(path, _HEAD)
    except FileNotFoundError:
        raise DocumentMissing(
            f"{path.name} vanished after the folder was scanned; the next scan settles it."
        ) from None
    except OSError as error:
        raise DocumentUnreadable(
            f"{path.name} cannot be read ({error.strerror}); check its permissions."
        ) from None
    if found != content_hash:
        raise DocumentChanged(
            f"{path.name} changed after the folder was scanned; the next scan takes the new bytes."
        )
    return head
