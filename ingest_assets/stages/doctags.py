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
from ingest_assets.parsing.page_ranges import PageRange, ReadPages, ranges_of, together, unpacked
from ingest_assets.parsing.reader import renamed
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.stages.base import ADOPTS, PRELOAD, BeforeBatch, Candidate, Stage, StoredRows
from ingest_assets.stages.documents import read_verified
from ingest_assets.stages.object_pool import ObjectPool
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.table import Table

if TYPE_CHECKING:
    from ingest_assets.parsing.reader import DocumentReader


class PageStore:
    """The pages of a long document, between the workers that read them and the one that puts them together.

    They rest beside the staged parts: a killed run finds them again, and a commit clears them away.
    """

    def __init__(self, item: WorkItem) -> None:
        self._folder = Path(item.output_paths[0]).parent / "pages" / item.fingerprint

    def path(self, pages: PageRange) -> Path:
        """Where a range rests."""
        return self._folder / f"{pages.first}-{pages.last}.pickle"

    def known(self) -> ReadPages:
        """All that is there; a damaged file counts as absent, and its pages are read again."""
        found: list[ReadPages] = []
        for path in sorted(self._folder.glob("*.pickle")):
            with suppress(Exception):  # whatever a broken pickle raises
                found.append(unpacked(path.read_bytes()))
        return together(found)

    def clear(self) -> None:
        """Forget them."""
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
# Limits only refuse documents: raising one must not convert all the others again.
_LIMITS = {name for name in ParsingOptions.model_fields if name.startswith("max_")} | {"ocr_timeout_seconds"}
# What only pages are read by, and so part of the engine's identity.
_OF_THE_ENGINE = {"pdf", "artifacts_path", "vlm", "ocr"}


@dataclass(frozen=True, slots=True)
class DoctagsStage(Stage):
    """One row per document that Docling could read. The engine is the one found where the plan was made."""

    name: ClassVar[str] = "doctags"
    version: ClassVar[str] = "2"
    table: ClassVar[TableSpec] = DOCTAGS
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
            meta = {name: row[name] for name in ("content_hash", "mime", "path")}
            yield Candidate(
                row["doc_id"],
                sha256_text(canonical_json([row["content_hash"], row["mime"]])),
                {**meta, "name": document_name(row["uri"])},
                (row["path"],),
                row["size_bytes"],
                can_adopt=True,
                ignores=unread_by(row["mime"]),
            )

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """One document, converted; one that only moved takes its row along."""
        path, name, mime = Path(item.meta["path"]), item.meta["name"], item.meta["mime"]
        read_verified(path, item.meta["content_hash"])
        # What the table holds of the same bytes under another id, with this document's name in it.
        stored: StoredRows | None = None if context.anew else item.meta.get(ADOPTS)
        rows = stored.read() if stored is not None else None
        if rows is not None:
            row: dict[str, Any] = rows.to_pylist()[0]
            row["document"] = renamed(row["document"], name)
        else:
            read_ahead = PageStore(item).known() if item.output_paths else ReadPages()
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
        """A warm reader with this worker's share of the cores."""
        threads = max(1, len(os.sched_getaffinity(0)) // context.workers)
        return _READERS.lend(self.parsing, threads, self.engine)

    def before_batch(self, batch: BeforeBatch) -> None:
        """Read the pages of long documents on all workers; their own turn then only puts them together.

        One long PDF would keep one worker busy long after the others are done. What fails here fails there
        again.
        """
        suspects = long_suspects(batch.to_run, batch.workers)
        if not suspects:
            return
        counted = batch.run(self.name, PageCounter(self), suspects)
        pages = {item_id: result.counts["pages"] for item_id, result in counted.items()}
        ranges = range_items(pages, suspects, batch.workers)
        if not ranges:
            return
        if batch.force:
            for item in suspects:
                PageStore(item).clear()
        documents = len({item.fingerprint for item in ranges})
        batch.log(f"{self.name}: long documents first: {documents}, in {len(ranges)} ranges of pages.")
        batch.run(f"{self.name} pages", RangeReader(self), ranges)


def unread_by(mime: str) -> tuple[str, ...]:
    """Formats that a document is not of and that have settings of their own: these are nothing to it."""
    return tuple(kind for kind in (*PAGE_FORMATS, "html") if kind != DOCLING_FORMATS.get(mime))


def _open_reader(parsing: ParsingOptions, threads: int, engine: PageEngine) -> "DocumentReader":
    """A warm converter: a fresh one per document costs many times the conversion."""
    from ingest_assets.parsing.reader import DocumentReader

    return DocumentReader(parsing, threads, engine)


_READERS = ObjectPool(_open_reader)


# Which documents are worth reading by ranges of pages, and the two workers that do it.


_RANGE = "range"
_MOST_OF_A_SHARE = 0.5
_SMALL = 64 * 1024  # bytes: too few for enough pages to share


def long_suspects(items: Sequence[WorkItem], workers: int) -> list[WorkItem]:
    """PDFs so large that one of them may be most of what a worker gets to do; at most two per worker."""
    pdfs = [item for item in items if item.meta["mime"] == PDF and ADOPTS not in item.meta]
    share = sum(item.cost_hint for item in pdfs) / workers
    least = max(_SMALL, _MOST_OF_A_SHARE * share)
    return [item for item in pdfs if item.cost_hint > least] if workers > 1 else []


def range_items(counted: Mapping[str, int], items: Sequence[WorkItem], workers: int) -> list[WorkItem]:
    """What to read ahead: the ranges of those documents that have enough pages for several."""
    found = []
    for item in items:
        ranges = ranges_of(counted.get(item.item_id, 0), workers)
        for pages in ranges if len(ranges) > 1 else ():
            found.append(
                replace(
                    item,
                    item_id=f"{item.item_id} pages {pages.first}-{pages.last}",
                    output_paths=(str(PageStore(item).path(pages)),),
                    meta={**item.meta, _RANGE: pages},
                    cost_hint=counted[item.item_id] / len(ranges),
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class PageCounter:
    """Says how many pages a document has."""

    stage: DoctagsStage

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        with self.stage.reader(context) as reader:
            pages = reader.count_pages(Path(item.meta["path"]), item.meta["name"], item.meta["mime"])
        return Result(counts={"pages": pages})


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads one range, unless it is there."""

    stage: DoctagsStage

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        path = Path(item.output_paths[0])
        if context.anew or not path.is_file():
            read_verified(Path(item.meta["path"]), item.meta["content_hash"])
            with self.stage.reader(context) as reader:
                pages = reader.read_pages(
                    Path(item.meta["path"]), item.meta["name"], item.meta["mime"], item.meta[_RANGE]
                )
            with replacing(path, waits=False) as scratch:  # at once and whole
                scratch.write_bytes(pages.packed())
        return Result(outputs=(str(path),))
