"""Documents become DocTags and Docling JSON."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from ingest_assets.core.identity import canonical_json, document_name, sha256_text
from ingest_assets.core.items import ItemContext, Result, WorkItem
from ingest_assets.core.schemas import DOCTAGS, TableSpec
from ingest_assets.parsing.engines import EMBEDDED, PAGE_FORMATS, PageEngine
from ingest_assets.parsing.libraries import library_versions
from ingest_assets.parsing.media import DOCLING_FORMATS, PDF
from ingest_assets.parsing.page_ranges import PageRange, ReadPages, merge_pages, split_pages, unpack
from ingest_assets.parsing.reader import rename_document
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.stages.base import ADOPTS, PRELOAD, BeforeBatch, Candidate, Stage, StoredRows
from ingest_assets.stages.documents import read_verified
from ingest_assets.stages.object_pool import ObjectPool
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.table import Table

if TYPE_CHECKING:
    from ingest_assets.parsing.reader import DocumentReader


class PageStore:
    """Stores page ranges of a long document until one worker merges them.

    They are stored next to the staged parts: they survive a killed run, and a commit removes them.
    """

    def __init__(self, item: WorkItem) -> None:
        self._folder = Path(item.output_paths[0]).parent / "pages" / item.fingerprint

    def path(self, pages: PageRange) -> Path:
        """Return the file of a range."""
        return self._folder / f"{pages.first}-{pages.last}.pickle"

    def load(self) -> ReadPages:
        """Return the stored pages. Damaged files are ignored: their pages are read again."""
        ranges: list[ReadPages] = []
        for path in sorted(self._folder.glob("*.pickle")):
            with suppress(Exception):  # a broken pickle can raise anything
                ranges.append(unpack(path.read_bytes()))
        return merge_pages(ranges)

    def clear(self) -> None:
        """Delete the stored pages."""
        shutil.rmtree(self._folder, ignore_errors=True)


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
# Limits only reject documents: raising one must not reconvert all the others.
_LIMITS = {name for name in ParsingOptions.model_fields if name.startswith("max_")} | {"ocr_timeout_seconds"}
# Options for page formats only, so they are part of the engine's identity.
_ENGINE_OPTIONS = {"pdf", "artifacts_path", "vlm", "ocr"}


@dataclass(frozen=True, slots=True)
class DoctagsStage(Stage):
    """One row per document that Docling can read. The planning process chooses the engine."""

    name: ClassVar[str] = "doctags"
    version: ClassVar[str] = "2"
    table: ClassVar[TableSpec] = DOCTAGS
    preload: ClassVar[tuple[str, ...]] = PRELOAD

    parsing: ParsingOptions = ParsingOptions()
    engine: PageEngine = EMBEDDED

    def config(self) -> Mapping[str, Any]:
        """Return the settings of all formats, and for each page format the identity of its engine."""
        shared = self.parsing.model_dump(mode="json", exclude=_LIMITS | _ENGINE_OPTIONS)
        return shared | {kind: self.engine.identity(kind, self.parsing) for kind in PAGE_FORMATS}

    def libraries(self) -> Mapping[str, str]:
        return library_versions()

    def footer(self) -> Mapping[str, str]:
        models = self.engine.describe_models(self.parsing)
        return {"pdf_engine": self.engine.name} | ({"pdf_models": models} if models else {})

    def candidates(self, documents: Table) -> Iterator[Candidate]:
        """Yield a candidate per document. Bytes and media type decide its row, except for the name in it."""
        columns = ["doc_id", "content_hash", "mime", "path", "uri", "size_bytes"]
        for row in documents.read(lambda rows: rows.select(columns)).iter_rows(named=True):
            meta = {name: row[name] for name in ("content_hash", "mime", "path")}
            yield Candidate(
                row["doc_id"],
                sha256_text(canonical_json([row["content_hash"], row["mime"]])),
                {**meta, "name": document_name(row["uri"])},
                (row["path"],),
                row["size_bytes"],
                can_adopt=True,
                ignores=unused_format_settings(row["mime"]),
            )

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Convert one document, or copy the stored row of the same bytes, if the file was only moved."""
        path, name, mime = Path(item.meta["path"]), item.meta["name"], item.meta["mime"]
        read_verified(path, item.meta["content_hash"])
        # The row of the same bytes under another id needs only this document's name.
        stored: StoredRows | None = None if context.force else item.meta.get(ADOPTS)
        rows = stored.read() if stored is not None else None
        if rows is not None:
            row: dict[str, Any] = rows.to_pylist()[0]
            row["document"] = rename_document(row["document"], name)
        else:
            read_ahead = PageStore(item).load() if item.output_paths else ReadPages()
            with self.reader(context) as reader:
                parsed = reader.read(path, name, mime, read_ahead)
            row = {column: getattr(parsed, column) for column in _COLUMNS}
        row |= {
            "doc_id": item.item_id,
            "content_hash": item.meta["content_hash"],
            "fingerprint": item.fingerprint,
        }
        return pa.Table.from_pylist([row], schema=self.spec.schema)

    def reader(self, context: ItemContext) -> AbstractContextManager["DocumentReader"]:
        """Lend a warm reader that uses this worker's share of the cores."""
        threads = max(1, len(os.sched_getaffinity(0)) // context.workers)
        return _READERS.lend(self.parsing, threads, self.engine)

    def before_batch(self, batch: BeforeBatch) -> None:
        """Read the pages of long documents on all workers; `rows` then only merges them.

        One long PDF would keep one worker busy long after the others are done. A failure here is not
        reported, because `rows` fails in the same way.
        """
        large = large_pdfs(batch.to_run, batch.workers)
        if not large:
            return
        counted = batch.run(f"{self.name} page counts", PageCounter(self), large)
        pages = {item_id: result.counts["pages"] for item_id, result in counted.items()}
        ranges = range_items(pages, large, batch.workers)
        if not ranges:
            return
        if batch.force:
            for item in large:
                PageStore(item).clear()
        documents = len({item.fingerprint for item in ranges})
        batch.log(f"{self.name}: reading long documents first ({documents}, in {len(ranges)} page ranges).")
        batch.run(f"{self.name} pages", RangeReader(self), ranges)


def unused_format_settings(mime: str) -> tuple[str, ...]:
    """Return the keys of `config` for other formats than this one: they cannot change the document's row."""
    return tuple(kind for kind in (*PAGE_FORMATS, "html") if kind != DOCLING_FORMATS.get(mime))


def _open_reader(parsing: ParsingOptions, threads: int, engine: PageEngine) -> "DocumentReader":
    """Open a reader, to be kept: a new one per document costs many times the conversion."""
    from ingest_assets.parsing.reader import DocumentReader

    return DocumentReader(parsing, threads, engine)


_READERS = ObjectPool(_open_reader)


# Long documents: which ones are read in page ranges, and the two workers for it.


_RANGE = "range"
_LARGE_SHARE = 0.5  # of a worker's share of the bytes
_SMALL = 64 * 1024  # bytes; such a file has too few pages to split


def large_pdfs(items: Sequence[WorkItem], workers: int) -> list[WorkItem]:
    """Return PDFs that are each more than half of one worker's share of the work; at most two per worker."""
    pdfs = [item for item in items if item.meta["mime"] == PDF and ADOPTS not in item.meta]
    share = sum(item.cost_hint for item in pdfs) / workers
    limit = max(_SMALL, _LARGE_SHARE * share)
    return [item for item in pdfs if item.cost_hint > limit] if workers > 1 else []


def range_items(counted: Mapping[str, int], items: Sequence[WorkItem], workers: int) -> list[WorkItem]:
    """Return an item per page range, for the documents with enough pages for several ranges."""
    page_items = []
    for item in items:
        ranges = split_pages(counted.get(item.item_id, 0), workers)
        for pages in ranges if len(ranges) > 1 else ():
            page_items.append(
                replace(
                    item,
                    item_id=f"{item.item_id} pages {pages.first}-{pages.last}",
                    output_paths=(str(PageStore(item).path(pages)),),
                    meta={**item.meta, _RANGE: pages},
                    cost_hint=counted[item.item_id] / len(ranges),
                )
            )
    return page_items


@dataclass(frozen=True, slots=True)
class PageCounter:
    """Counts the pages of a document."""

    stage: DoctagsStage

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        with self.stage.reader(context) as reader:
            pages = reader.count_pages(Path(item.meta["path"]), item.meta["name"], item.meta["mime"])
        return Result(counts={"pages": pages})


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads and stores one page range, unless it is stored already."""

    stage: DoctagsStage

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        path = Path(item.output_paths[0])
        if context.force or not path.is_file():
            read_verified(Path(item.meta["path"]), item.meta["content_hash"])
            with self.stage.reader(context) as reader:
                pages = reader.read_pages(
                    Path(item.meta["path"]), item.meta["name"], item.meta["mime"], item.meta[_RANGE]
                )
            with replacing(path, waits=False) as scratch:  # atomic
                scratch.write_bytes(pages.pack())
        return Result(outputs=(str(path),))
