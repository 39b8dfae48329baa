"""Documents become DocTags and Docling JSON."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from ingest_assets.model.identity import canonical_json, document_name, sha256_text
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.options import ParsingOptions
from ingest_assets.model.schemas import DOCTAGS, TableSpec
from ingest_assets.parsing.engines.choice import EMBEDDED, PAGE_FORMATS, PageEngine
from ingest_assets.parsing.libraries import library_versions
from ingest_assets.parsing.media import DOCLING_FORMATS
from ingest_assets.parsing.parsed import renamed
from ingest_assets.parsing.ranges import ReadPages
from ingest_assets.stages.adoption import StoredRows
from ingest_assets.stages.documents import read_verified
from ingest_assets.stages.lending import Lending
from ingest_assets.stages.page_store import PageStore
from ingest_assets.stages.stage import ADOPTS, PRELOAD, Candidate
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
# Limits only refuse documents: raising one must not convert all the others again.
_LIMITS = {name for name in ParsingOptions.model_fields if name.startswith("max_")} | {"ocr_timeout_seconds"}
# What only pages are read by, and so part of the engine's identity.
_OF_THE_ENGINE = {"pdf", "artifacts_path", "vlm", "ocr"}


@dataclass(frozen=True, slots=True)
class DoctagsStage:
    """One row per document that Docling could read. The engine is the one found where the plan was made."""

    name: ClassVar[str] = "doctags"
    version: ClassVar[str] = "2"
    spec: ClassVar[TableSpec] = DOCTAGS
    preload: ClassVar[tuple[str, ...]] = PRELOAD

    parsing: ParsingOptions = ParsingOptions()
    engine: PageEngine = EMBEDDED

    def config(self) -> Mapping[str, Any]:
        """What decides every format, and for each page format who reads it."""
        shared = self.parsing.model_dump(mode="json", exclude=_LIMITS | _OF_THE_ENGINE)
        return shared | {kind: self.engine.identity(kind, self.parsing) for kind in PAGE_FORMATS}

    def libraries(self) -> Mapping[str, str]:
        return library_versions()

    def footer(self) -> Mapping[str, str]:
        models = self.engine.described(self.parsing)
        return {"pdf_engine": self.engine.name} | ({"pdf_models": models} if models else {})

    def candidates(self, documents: Table) -> Iterator[Candidate]:
        """One per acquired document. Its bytes and media type decide the row, but for the document's name."""
        wanted = ["doc_id", "content_hash", "mime", "path", "uri", "size_bytes"]
        for row in documents.read(lambda rows: rows.select(wanted)).iter_rows(named=True):
            upstream = upstream_of(row["content_hash"], row["mime"])
            meta = {name: row[name] for name in ("content_hash", "mime", "path")}
            meta["name"] = document_name(row["uri"])
            yield Candidate(
                row["doc_id"],
                upstream,
                meta,
                (row["path"],),
                row["size_bytes"],
                can_adopt=True,
                ignores=unread_by(row["mime"]),
            )

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """One document, converted; one that only moved takes its row along."""
        read_verified(Path(item.meta["path"]), item.meta["content_hash"])
        row = (None if context.anew else _adopted(item)) or self._converted(item, context)
        row |= {
            "doc_id": item.item_id,
            "content_hash": item.meta["content_hash"],
            "fingerprint": item.fingerprint,
        }
        return pa.Table.from_pylist([row], schema=self.spec.schema)

    @contextlib.contextmanager
    def reader(self, context: ItemContext) -> Iterator["DocumentReader"]:
        """A warm reader with this worker's share of the cores."""
        threads = max(1, len(os.sched_getaffinity(0)) // context.workers)
        with _READERS.lend(self.parsing, threads, self.engine) as reader:
            yield reader

    def _converted(self, item: WorkItem, context: ItemContext) -> dict[str, Any]:
        """What a reader makes of it, and of its pages that were read ahead."""
        path, name, mime = Path(item.meta["path"]), item.meta["name"], item.meta["mime"]
        known = PageStore(item).known() if item.output_paths else ReadPages()
        with self.reader(context) as reader:
            parsed = reader.read(path, name, mime, known)
        return {name: getattr(parsed, name) for name in _COLUMNS}


def upstream_of(content_hash: str, mime: str) -> str:
    """What of a documents row decides a doctags row."""
    return sha256_text(canonical_json([content_hash, mime]))


def unread_by(mime: str) -> tuple[str, ...]:
    """Formats that a document is not of and that have settings of their own: these are nothing to it."""
    return tuple(kind for kind in (*PAGE_FORMATS, "html") if kind != DOCLING_FORMATS.get(mime))


def _adopted(item: WorkItem) -> dict[str, Any] | None:
    """What the table holds of the same bytes under another id, with this document's name in it."""
    stored: StoredRows | None = item.meta.get(ADOPTS)
    rows = stored.read() if stored is not None else None
    if rows is None:
        return None
    row: dict[str, Any] = rows.to_pylist()[0]
    return row | {"document": renamed(row["document"], item.meta["name"])}


def _open_reader(parsing: ParsingOptions, threads: int, engine: PageEngine) -> "DocumentReader":
    """A warm converter: a fresh one per document costs many times the conversion."""
    from ingest_assets.parsing.reader import DocumentReader

    return DocumentReader(parsing, threads, engine)


_READERS = Lending(_open_reader)
