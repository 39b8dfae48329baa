"""Reads one file; the result is a `ParsedDocument` or an `ItemError`."""

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
from ingest_assets.parsing.guard import check_file, check_size, docling_format
from ingest_assets.parsing.guard.images import limit_pillow
from ingest_assets.parsing.guard.markup import flatten_html_parts, patch_html_parser
from ingest_assets.parsing.libraries import OcrClock, prepare_process
from ingest_assets.parsing.page_ranges import PageRange, ReadPages
from ingest_assets.parsing.pipelines import Pipelines
from ingest_assets.settings.parsing import ParsingOptions

_NO_PAGES = ReadPages()
_FIRST_PAGE = PageRange(1, 1)
_DAMAGED = "The file is damaged or not of its declared type ({}). Replace it with an intact copy."

# Conversion of Docling's document: canonical JSON, DocTags and counts.


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document that has been read. Equal bytes and options give equal fields in any process and folder."""

    doctags: str
    document: str  # Docling's JSON: sorted keys, no images
    parser: str
    pages: int
    texts: int
    tables: int
    pictures: int
    chars: int  # characters that can get into chunks, without whitespace
    title: str | None
    warnings: tuple[str, ...]


def parsed_document(document: Any, *, name: str, parser: str, warnings: tuple[str, ...]) -> ParsedDocument:
    """Return the fields of a Docling document, which is normalized in place."""
    from ingest_assets.parsing.fast_docling import doctags_of

    _normalize(document, name)
    doctags = doctags_of(document)  # before the next change: DocTags are as Docling writes them
    for item in document.texts:  # formulas that were not decoded to LaTeX stay searchable
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
    """Return Docling's JSON; its bytes are the same for equal documents."""
    content = document.export_to_dict()
    for table in content.get("tables", ()):
        table["data"].pop("grid", None)  # computed from the cells when the document is loaded
    return canonical_json(content)


def rename_document(document: str, name: str) -> str:
    """Return the JSON as if the same bytes had been read under another name."""
    content = json.loads(document)
    content["name"] = PurePosixPath(name).stem
    if content.get("origin") is not None:
        content["origin"]["filename"] = PurePosixPath(name).name
    return canonical_json(content)


def usable_texts(document: Any) -> Iterator[str]:
    """Yield the texts that a chunker sees: no headers, footers or text inside pictures."""
    for item, _level in document.iterate_items():
        if hasattr(item, "data") and hasattr(item.data, "table_cells"):
            # the content of a rich cell follows as separate items
            yield from (cell.text for cell in item.data.table_cells if not hasattr(cell, "ref"))
        elif hasattr(item, "text"):
            yield item.text


def title_of(document: Any) -> str | None:
    """Return the title in the body, else the file's metadata title, else the first heading."""
    first_texts: dict[tuple[str, str], str] = {}
    for item in document.texts:
        text = " ".join(item.text.split())
        if text:
            first_texts.setdefault((item.label.value, item.content_layer.value), text)
    preferred = (("title", "body"), ("title", "furniture"), ("section_header", "body"))
    return next((first_texts[key] for key in preferred if key in first_texts), None)


def _normalize(document: Any, name: str) -> None:
    """Remove addresses and images, and replace picture classes that DocTags do not have."""
    document.name = PurePosixPath(name).stem
    if document.origin is not None:
        document.origin.filename = PurePosixPath(name).name
        document.origin.uri = None
    for item in (*document.pages.values(), *document.pictures, *document.tables):
        item.image = None
    for picture in document.pictures:
        classification = picture.meta.classification if picture.meta else None
        for prediction in classification.predictions if classification else ():
            # Docling has more chart classes than DocTags have tokens, and fails to serialize the others
            if not _has_token(prediction.class_name):
                is_chart = prediction.class_name.endswith("_chart")
                prediction.class_name = "chart" if is_chart else "other"


def _has_token(class_name: str) -> bool:
    from docling_core.types.doc.tokens import DocumentToken

    try:
        return bool(DocumentToken.get_picture_classification_token(class_name))
    except ValueError:
        return False


class DocumentReader:
    """Reads documents with Docling, one at a time. Created once per worker process, since that is slow."""

    def __init__(self, options: ParsingOptions, threads: int, engine: PageEngine = EMBEDDED) -> None:
        prepare_process()
        patch_html_parser()
        self._options = options
        self._pipelines = Pipelines(options, threads, engine)

    def read(self, path: Path, name: str, mime: str, known: ReadPages = _NO_PAGES) -> ParsedDocument:
        """Read the bytes at `path` as a document called `name` of media type `mime` (see `media_type`).

        `known` are pages that `read_pages` has read already.
        """
        limit_pillow(self._options)
        content = self._content(path)
        file_format = docling_format(mime, content, self._options)
        checked = check_file(file_format, content, self._options)
        with _library_errors(file_format), flatten_html_parts(file_format) as notes:
            readable = checked.content
            if file_format == "html" and self._options.html == "strict":
                from ingest_assets.parsing.html import without_clutter

                readable = without_clutter(readable)
            # the parser starts on all pages of its range when opened; one is enough if all are known
            pages = _FIRST_PAGE if known.is_complete else None
            source = self._open(file_format, name, readable, content, pages)
            pipeline, clock = self._pipeline(file_format, known)
            result = pipeline.execute(source, raises_on_error=True)
            clock.check()
            _require_complete(result)
            warnings = tuple(dict.fromkeys((*checked.warnings, *notes, *_warnings(result))))
            parser = self._pipelines.parser(file_format)
            return parsed_document(result.document, name=name, parser=parser, warnings=warnings)

    def count_pages(self, path: Path, name: str, mime: str) -> int:
        """Return the number of pages; 0 if the engine cannot read the document in ranges."""
        content = self._content(path)
        file_format = docling_format(mime, content, self._options)
        if not self._pipelines.reads_ranges(file_format):
            return 0
        check_file(file_format, content, self._options)
        with _library_errors(file_format):
            source = self._open(file_format, name, content, content, _FIRST_PAGE)
            source._backend.unload()
            return int(source.page_count)

    def read_pages(self, path: Path, name: str, mime: str, pages: PageRange) -> ReadPages:
        """Read a range of pages, for a later `read` of the whole document, possibly in another process."""
        limit_pillow(self._options)
        content = self._content(path)
        file_format = docling_format(mime, content, self._options)
        check_file(file_format, content, self._options)
        with _library_errors(file_format):
            source = self._open(file_format, name, content, content, pages)
            pipeline, clock = self._pipeline(file_format)
            return replace(pipeline.read_pages(source), ocr_seconds=clock.spent_seconds)

    def _content(self, path: Path) -> bytes:
        try:
            check_size(path.stat().st_size, self._options)
            return path.read_bytes()
        except FileNotFoundError as error:
            raise DocumentMissing(
                "The file no longer exists. The next run removes its document or downloads it again."
            ) from error
        except OSError as error:
            raise DocumentUnreadable(
                f"Cannot read the file: {error.strerror}. Check its permissions and retry."
            ) from error

    def _pipeline(self, file_format: str, known: ReadPages = _NO_PAGES) -> tuple[Any, OcrClock]:
        pipeline = self._pipelines.pipeline(file_format)
        # set for images too: they use the same pipeline and must not get the pages of a PDF
        if hasattr(pipeline, "known_pages"):
            pipeline.known_pages = known
        clock = getattr(getattr(pipeline, "ocr_model", None), "clock", None) or OcrClock()
        clock.restart(self._options.ocr_timeout_seconds, known.ocr_seconds)
        return pipeline, clock

    def _open(
        self, file_format: str, name: str, content: bytes, original: bytes, pages: PageRange | None = None
    ) -> Any:
        from docling.datamodel.base_models import InputFormat
        from docling.datamodel.document import InputDocument
        from docling.datamodel.settings import DocumentLimits
        from docling.utils.utils import create_file_hash

        source = InputDocument(
            path_or_stream=BytesIO(content),
            format=InputFormat(file_format),
            backend=self._pipelines.backend(file_format),
            backend_options=self._pipelines.backend_options(file_format),
            filename=Path(name).name,
            limits=DocumentLimits(page_range=(pages.first, pages.last)) if pages else None,
        )
        if not source.valid:
            raise CorruptDocument(_DAMAGED.format(f"not readable as {file_format}"))
        if content is not original:  # a repaired document keeps the hash of the original file
            source.document_hash = create_file_hash(BytesIO(original))
            source._backend.document_hash = source.document_hash
        return source


@contextmanager
def _library_errors(file_format: str) -> Iterator[None]:
    """Convert the libraries' errors: after `check_file` has passed, they are caused by the document."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ItemError | MemoryError):
            raise
        # a Docling pipeline wraps errors in a RuntimeError
        cause = error.__cause__ or error
        if isinstance(cause, ItemError | MemoryError):
            raise cause from error
        if isinstance(cause, ImportError):
            raise EngineUnavailable(
                f"A library for {file_format} files is not installed ({cause.name or type(cause).__name__}). "
                "Reinstall ingest_assets with its dependencies."
            ) from error
        if isinstance(cause, RecursionError):
            raise CorruptDocument("The document is nested too deep. Simplify it.") from error
        raise CorruptDocument(_DAMAGED.format(type(cause).__name__)) from error


def _require_complete(result: Any) -> None:
    """Raise when no page could be read; a partly read document only gets warnings."""
    from docling.datamodel.base_models import ConversionStatus

    failed = {error.page_no: error.module_name for error in result.errors if error.page_no}
    is_read = result.status in (ConversionStatus.SUCCESS, ConversionStatus.PARTIAL_SUCCESS)
    if is_read and not (failed and len(failed) >= len(result.document.pages)):
        return
    if failed and set(failed.values()) == {"ocr"}:
        raise OcrFailed(f"OCR failed on all {len(failed)} pages. Scan the document again or crop it.")
    pages = f"none of its {len(failed)} pages" if failed else "no page"
    raise CorruptDocument(_DAMAGED.format(f"{pages} could be read"))


def _warnings(result: Any) -> tuple[str, ...]:
    """Return the failed pages and steps of a partly read document, without messages of libraries."""
    failures = {(error.page_no or 0, error.module_name, error.category.value) for error in result.errors}
    return tuple(
        f"W_PARSE_PARTIAL: {f'page {page}' if page else 'document'}: {step} ({category})"
        for page, step, category in sorted(failures)
    )
