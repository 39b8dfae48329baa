"""Documents become DocTags and Docling JSON."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from ingest_assets.model.identity import canonical_json, sha256_text
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.options import ParsingOptions
from ingest_assets.model.schemas import DOCTAGS, TableSpec
from ingest_assets.parsing.libraries import library_versions
from ingest_assets.stages.documents import read_verified
from ingest_assets.stages.lending import Lending
from ingest_assets.stages.stage import PRELOAD, Candidate
from ingest_assets.storage.tables import Table

if TYPE_CHECKING:
    from ingest_assets.parsing.reader import DocumentReader

_COLUMNS = (
    "doctags",
    "document",
    "parser",
    "pages",
    "texts",
    "tables",
    "pictures",
    "chars",
    "title",
    "warnings",
)


@dataclass(frozen=True, slots=True)
class DoctagsStage:
    """One row per document that Docling could read."""

    name: ClassVar[str] = "doctags"
    version: ClassVar[str] = "1"
    spec: ClassVar[TableSpec] = DOCTAGS
    preload: ClassVar[tuple[str, ...]] = PRELOAD

    parsing: ParsingOptions = ParsingOptions()

    def config(self) -> Mapping[str, Any]:
        """Limits only refuse documents: raising one must not convert all the others again."""
        return self.parsing.model_dump(mode="json", exclude={"max_mebibytes", "max_pages"})

    def libraries(self) -> Mapping[str, str]:
        return library_versions()

    def footer(self) -> Mapping[str, str]:
        return {}

    def candidates(self, documents: Table) -> Iterator[Candidate]:
        """One per acquired document. Its bytes and media type decide the row, not the folder it rests in."""
        wanted = ["doc_id", "content_hash", "mime", "path", "size_bytes"]
        for row in documents.scan().select(wanted).collect().iter_rows(named=True):
            upstream = sha256_text(canonical_json([row["content_hash"], row["mime"]]))
            meta = {name: row[name] for name in ("content_hash", "mime", "path")}
            yield Candidate(row["doc_id"], upstream, meta, (row["path"],), row["size_bytes"])

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Convert one document with a warm reader."""
        path = Path(item.meta["path"])
        read_verified(path, item.meta["content_hash"])
        threads = max(1, len(os.sched_getaffinity(0)) // context.workers)
        with _READERS.lend(self.parsing, threads) as reader:
            parsed = reader.read(path, path.name, item.meta["mime"])
        row = {name: getattr(parsed, name) for name in _COLUMNS}
        row |= {
            "doc_id": item.item_id,
            "content_hash": item.meta["content_hash"],
            "fingerprint": item.fingerprint,
        }
        return pa.Table.from_pylist([row], schema=self.spec.schema)


def _open_reader(parsing: ParsingOptions, threads: int) -> "DocumentReader":
    """A warm converter: a fresh one per document costs many times the conversion."""
    from ingest_assets.parsing.reader import DocumentReader

    return DocumentReader(parsing, threads)


_READERS = Lending(_open_reader)
