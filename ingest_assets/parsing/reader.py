"""The one door of the room: a file goes in, a `ParsedDocument` or an `ItemError` comes out."""

from io import BytesIO
from pathlib import Path
from typing import Any

from ingest_assets.model.errors import DocumentMissing, DocumentUnreadable, ItemError
from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.engines import EMBEDDED, Engines, PageEngine
from ingest_assets.parsing.errors import CorruptDocument
from ingest_assets.parsing.inspection import check_pdf, check_size, docling_format
from ingest_assets.parsing.parsed import ParsedDocument, parsed
from ingest_assets.parsing.quiet import go_offline, silence_libraries, without_office_programs

_DAMAGED = "The file is damaged or not what its type says ({}); get an intact copy."


class DocumentReader:
    """Docling, warm. Made once per worker process; reads one document at a time."""

    def __init__(self, options: ParsingOptions, threads: int, engine: PageEngine = EMBEDDED) -> None:
        go_offline()
        silence_libraries()
        without_office_programs()
        self._options = options
        self._engines = Engines(options, threads, engine)

    def read(self, path: Path, name: str, mime: str) -> ParsedDocument:
        """Read the bytes at `path` as a document called `name` of media type `mime` (see `media_type`)."""
        content = self._content(path)
        kind = docling_format(mime, content)
        if kind == "pdf":
            check_pdf(content, self._options)
        result = self._convert(kind, name, content)
        parser = self._engines.parser(kind)
        return parsed(result.document, name=name, parser=parser, warnings=_warnings(result))

    def _content(self, path: Path) -> bytes:
        try:
            check_size(path.stat().st_size, self._options)
            return path.read_bytes()
        except FileNotFoundError as error:
            raise DocumentMissing("The file is not there any more; the next scan drops it.") from error
        except OSError as error:
            raise DocumentUnreadable(f"The file cannot be read: {error.strerror}.") from error

    def _convert(self, kind: str, name: str, content: bytes) -> Any:
        source = self._open(kind, name, content)
        try:
            return _completed(self._engines.pipeline(kind).execute(source, raises_on_error=True))
        except RuntimeError as error:  # how a Docling pipeline reports whatever stopped it
            if isinstance(error.__cause__, ItemError | MemoryError | ImportError):
                raise error.__cause__ from None
            raise CorruptDocument(_DAMAGED.format(type(error.__cause__ or error).__name__)) from error

    def _open(self, kind: str, name: str, content: bytes) -> Any:
        from docling.datamodel.base_models import InputFormat
        from docling.datamodel.document import InputDocument

        source = InputDocument(
            path_or_stream=BytesIO(content),
            format=InputFormat(kind),
            backend=self._engines.backend(kind),
            backend_options=self._engines.backend_options(kind),
            filename=Path(name).name,
        )
        if not source.valid:
            raise CorruptDocument(_DAMAGED.format(f"not readable as {kind}"))
        return source


def _completed(result: Any) -> Any:
    from docling.datamodel.base_models import ConversionStatus

    if result.status not in (ConversionStatus.SUCCESS, ConversionStatus.PARTIAL_SUCCESS):
        raise CorruptDocument(_DAMAGED.format("no page could be read"))
    failed_pages = {error.page_no for error in result.errors if error.page_no}
    if failed_pages and len(failed_pages) >= len(result.document.pages):
        raise CorruptDocument(_DAMAGED.format(f"none of its {len(failed_pages)} pages could be read"))
    return result


def _warnings(result: Any) -> tuple[str, ...]:
    """What failed in a document that was read in part: the page and the step, never a library's message."""
    found = {(error.page_no or 0, error.module_name, error.category.value) for error in result.errors}
    return tuple(
        f"W_PARSE_PARTIAL: {f'page {page}' if page else 'document'}: {step} ({category})"
        for page, step, category in sorted(found)
    )
