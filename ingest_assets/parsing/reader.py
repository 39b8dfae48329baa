"""The one door of the room: a file goes in, a `ParsedDocument` or an `ItemError` comes out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from ingest_assets.core.errors import DocumentMissing, DocumentUnreadable, ItemError
from ingest_assets.core.identity import canonical_json
from ingest_assets.parsing.engines import EMBEDDED, PageEngine
from ingest_assets.parsing.errors import CorruptDocument, EngineUnavailable, OcrFailed
from ingest_assets.parsing.guard import check_size, docling_format, inspect
from ingest_assets.parsing.guard.images import limit_pillow
from ingest_assets.parsing.guard.markup import flattening, watch_html_parts
from ingest_assets.parsing.libraries import OcrClock, prepare_process
from ingest_assets.parsing.page_ranges import PageRange, ReadPages
from ingest_assets.parsing.pipelines import Engines
from ingest_assets.settings.parsing import ParsingOptions

_NOTHING = ReadPages()
_ONE_PAGE = PageRange(1, 1)
_DAMAGED = "The file is damaged or not what its type says ({}); get an intact copy."

# What a read document is, and how it is taken from Docling's own: canonical, small, counted.


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """One document, read. Equal bytes and equal options give equal fields, in any process and folder."""

    doctags: str
    document: str  # Docling's JSON: sorted keys, no images
    parser: str
    pages: int
    texts: int
    tables: int
    pictures: int
    chars: int  # characters that can become chunks; whitespace does not count
    title: str | None
    warnings: tuple[str, ...]


def parsed(document: Any, *, name: str, parser: str, warnings: tuple[str, ...]) -> ParsedDocument:
    """The fields of a Docling document; the document itself is tidied in place."""
    from ingest_assets.parsing.fast_docling import doctags_of

    _tidy(document, name)
    doctags = doctags_of(document)  # as Docling has it
    for item in document.texts:  # what no model has decoded to LaTeX must not be lost to search
        if item.label.value == "formula" and not item.text:
            item.text = item.orig
    return ParsedDocument(
        doctags=doctags,
        document=document_json(document),
        parser=parser,
        pages=len(document.pages),
        texts=len(document.texts),
        tables=len(document.tables),
        pictures=len(document.pictures),
        chars=sum(len("".join(text.split())) for text in usable_texts(document)),
        title=title_of(document),
        warnings=warnings,
    )


def document_json(document: Any) -> str:
    """Docling's JSON, byte for byte the same for equal documents."""
    content = document.export_to_dict()
    for table in content.get("tables", ()):
        table["data"].pop("grid", None)  # computed again from the cells when the document is loaded
    return canonical_json(content)


def renamed(document: str, name: str) -> str:
    """The JSON of the same bytes under another name: what reading them as such a document would give."""
    content = json.loads(document)
    content["name"] = PurePosixPath(name).stem
    if content.get("origin") is not None:
        content["origin"]["filename"] = PurePosixPath(name).name
    return canonical_json(content)


def usable_texts(document: Any) -> Iterator[str]:
    """Every text of the body that a chunker sees: not headers and footers, nor the text inside pictures."""
    for item, _level in document.iterate_items():
        if hasattr(item, "data") and hasattr(item.data, "table_cells"):
            # a rich cell's content follows as items of its own
            yield from (cell.text for cell in item.data.table_cells if not hasattr(cell, "ref"))
        elif hasattr(item, "text"):
            yield item.text


def title_of(document: Any) -> str | None:
    """The body's title, else the title the file declares, else its first heading."""
    by_kind: dict[tuple[str, str], str] = {}
    for item in document.texts:
        text = " ".join(item.text.split())
        if text:
            by_kind.setdefault((item.label.value, item.content_layer.value), text)
    wanted = (("title", "body"), ("title", "furniture"), ("section_header", "body"))
    return next((by_kind[kind] for kind in wanted if kind in by_kind), None)


def _tidy(document: Any, name: str) -> None:
    """Without addresses and images, and nothing that DocTags have no name for."""
    document.name = PurePosixPath(name).stem
    if document.origin is not None:
        document.origin.filename = PurePosixPath(name).name
        document.origin.uri = None
    for item in (*document.pages.values(), *document.pictures, *document.tables):
        item.image = None
    for picture in document.pictures:
        classification = picture.meta.classification if picture.meta else None
        for kind in classification.predictions if classification else ():
            # Docling knows more kinds of charts than DocTags have names for, and then cannot write them
            if not _has_token(kind.class_name):
                kind.class_name = "chart" if kind.class_name.endswith("_chart") else "other"


def _has_token(kind: str) -> bool:
    from docling_core.types.doc.tokens import DocumentToken

    try:
        return bool(DocumentToken.get_picture_classification_token(kind))
    except ValueError:
        return False


class DocumentReader:
    """Docling, warm. Made once per worker process; reads one document at a time."""

    def __init__(self, options: ParsingOptions, threads: int, engine: PageEngine = EMBEDDED) -> None:
        prepare_process()
        watch_html_parts()
        self._options = options
        self._engines = Engines(options, threads, engine)

    def read(self, path: Path, name: str, mime: str, known: ReadPages = _NOTHING) -> ParsedDocument:
        """Read the bytes at `path` as a document called `name` of media type `mime` (see `media_type`).

        `known` are pages of it that `read_pages` has read already.
        """
        limit_pillow(self._options)
        content = self._content(path)
        kind = docling_format(mime, content, self._options)
        inspected = inspect(kind, content, self._options)
        with _faults_of_libraries(kind), flattening(kind) as notes:
            readable = inspected.content
            if kind == "html" and self._options.html == "strict":
                from ingest_assets.parsing.html import without_clutter

                readable = without_clutter(readable)
            # the parser begins with all pages that it is not kept from
            needed = _ONE_PAGE if known.is_whole else None
            source = self._open(kind, name, readable, content, needed)
            pipeline, clock = self._pipeline(kind, known)
            result = pipeline.execute(source, raises_on_error=True)
            clock.check()
            _require_complete(result)
            warnings = tuple(dict.fromkeys((*inspected.warnings, *notes, *_warnings(result))))
            return parsed(result.document, name=name, parser=self._engines.parser(kind), warnings=warnings)

    def count_pages(self, path: Path, name: str, mime: str) -> int:
        """How many pages the engine would read; 0 for what it cannot read in ranges."""
        content = self._content(path)
        kind = docling_format(mime, content, self._options)
        if not self._engines.reads_ranges(kind):
            return 0
        inspect(kind, content, self._options)
        with _faults_of_libraries(kind):
            source = self._open(kind, name, content, content, _ONE_PAGE)
            source._backend.unload()
            return int(source.page_count)

    def read_pages(self, path: Path, name: str, mime: str, wanted: PageRange) -> ReadPages:
        """A range of pages, for a `read` of the whole document later and perhaps elsewhere."""
        limit_pillow(self._options)
        content = self._content(path)
        kind = docling_format(mime, content, self._options)
        inspect(kind, content, self._options)
        with _faults_of_libraries(kind):
            source = self._open(kind, name, content, content, wanted)
            pipeline, clock = self._pipeline(kind)
            return replace(pipeline.pages_of(source), ocr_seconds=clock.spent_seconds)

    def _content(self, path: Path) -> bytes:
        try:
            check_size(path.stat().st_size, self._options)
            return path.read_bytes()
        except FileNotFoundError as error:
            raise DocumentMissing("The file is not there any more; the next scan drops it.") from error
        except OSError as error:
            raise DocumentUnreadable(f"The file cannot be read: {error.strerror}.") from error

    def _pipeline(self, kind: str, known: ReadPages = _NOTHING) -> tuple[Any, OcrClock]:
        pipeline = self._engines.pipeline(kind)
        # Not for PDFs alone: pictures go through the same pipeline, and must not get a PDF's pages.
        if hasattr(pipeline, "given"):
            pipeline.given = known
        clock = getattr(getattr(pipeline, "ocr_model", None), "clock", None) or OcrClock()
        clock.restart(self._options.ocr_timeout_seconds, known.ocr_seconds)
        return pipeline, clock

    def _open(
        self, kind: str, name: str, content: bytes, original: bytes, wanted: PageRange | None = None
    ) -> Any:
        from docling.datamodel.base_models import InputFormat
        from docling.datamodel.document import InputDocument
        from docling.datamodel.settings import DocumentLimits
        from docling.utils.utils import create_file_hash

        source = InputDocument(
            path_or_stream=BytesIO(content),
            format=InputFormat(kind),
            backend=self._engines.backend(kind),
            backend_options=self._engines.backend_options(kind),
            filename=Path(name).name,
            limits=DocumentLimits(page_range=(wanted.first, wanted.last)) if wanted else None,
        )
        if not source.valid:
            raise CorruptDocument(_DAMAGED.format(f"not readable as {kind}"))
        if content is not original:  # it was mended, and is still the file that it was
            source.document_hash = create_file_hash(BytesIO(original))
            source._backend.document_hash = source.document_hash
        return source


@contextmanager
def _faults_of_libraries(kind: str) -> Iterator[None]:
    """Whatever the libraries raise at bytes that passed inspection is the bytes' fault, in our words."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ItemError | MemoryError):
            raise
        # a Docling pipeline reports whatever stopped it as the cause of a RuntimeError
        cause = error.__cause__ or error
        if isinstance(cause, ItemError | MemoryError):
            raise cause from error
        if isinstance(cause, ImportError):
            raise EngineUnavailable(
                f"A library that reads {kind} files is not installed ({cause.name or type(cause).__name__}); "
                "install the product's dependencies anew."
            ) from error
        if isinstance(cause, RecursionError):
            raise CorruptDocument(
                "The file nests its parts too deep to be read; save it in a simpler form."
            ) from error
        raise CorruptDocument(_DAMAGED.format(type(cause).__name__)) from error


def _require_complete(result: Any) -> None:
    """Raise when no page could be read; a document of which some were is read in part."""
    from docling.datamodel.base_models import ConversionStatus

    failed = {error.page_no: error.module_name for error in result.errors if error.page_no}
    is_read = result.status in (ConversionStatus.SUCCESS, ConversionStatus.PARTIAL_SUCCESS)
    if is_read and not (failed and len(failed) >= len(result.document.pages)):
        return
    if failed and set(failed.values()) == {"ocr"}:
        raise OcrFailed(f"Text recognition failed on all {len(failed)} pages; scan it again or crop it.")
    pages = f"none of its {len(failed)} pages" if failed else "no page"
    raise CorruptDocument(_DAMAGED.format(f"{pages} could be read"))


def _warnings(result: Any) -> tuple[str, ...]:
    """What failed in a document that was read in part: the page and the step, never a library's message."""
    found = {(error.page_no or 0, error.module_name, error.category.value) for error in result.errors}
    return tuple(
        f"W_PARSE_PARTIAL: {f'page {page}' if page else 'document'}: {step} ({category})"
        for page, step, category in sorted(found)
    )
