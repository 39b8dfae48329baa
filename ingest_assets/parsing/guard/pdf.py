"""PDFs: is it one, does it open, how much is in it, and what does it carry along."""

from dataclasses import dataclass
from typing import Any

from ingest_assets.parsing.errors import (
    CorruptDocument,
    DecompressionBomb,
    InvalidPdf,
    PasswordNeeded,
    TooManyPages,
)
from ingest_assets.parsing.guard.limits import MEGAPIXEL
from ingest_assets.parsing.guard.pdf_objects import damaged_pages, read_contents, refuse_endless_drawing
from ingest_assets.settings.parsing import ParsingOptions

DRAWN_SCALE = 2  # pixels per point, that is 144 dpi
_HEADER_BYTES = 1024  # where viewers look for the header
_NEEDS_PASSWORD = (4, 5)  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY (an unknown security handler)


def check_pdf(content: bytes, options: ParsingOptions) -> tuple[str, ...]:
    """Refuse what is no PDF, what does not open and what is too much; say what is left out of it."""
    if b"%PDF-" not in content[:_HEADER_BYTES]:
        raise InvalidPdf("The file is called a PDF and is none: it does not begin like one; get it anew.")
    contents = read_contents(content, options)
    refuse_endless_drawing(contents)
    opened = _open(content, options)
    warnings = []
    if contents.has_scripts:
        warnings.append("W_PDF_JAVASCRIPT: the PDF holds scripts; none was run")
    if contents.has_attachments or opened.has_attachments:
        warnings.append("W_PDF_EMBEDDED_FILES: the PDF holds other files; they were not read")
    # streams that cannot be unpacked without the key are not damaged
    damaged, pages = ([], 0) if opened.is_encrypted else damaged_pages(contents)
    if damaged and len(damaged) == pages:
        raise CorruptDocument("The PDF is damaged: the content of none of its pages can be unpacked.")
    lost = dict.fromkeys(opened.missing_pages, "is not there") | dict.fromkeys(damaged, "has damaged content")
    return (*warnings, *(f"W_PARSE_PARTIAL: page {at}: {why}" for at, why in sorted(lost.items())))


@dataclass(frozen=True, slots=True)
class _Opened:
    """What a viewer knows of the file."""

    missing_pages: list[int]
    has_attachments: bool
    is_encrypted: bool


def _open(content: bytes, options: ParsingOptions) -> _Opened:
    import pypdfium2
    from docling.utils.locks import pypdfium2_lock

    with pypdfium2_lock:  # PDFium works for one thread at a time, and Docling uses it too
        try:
            document = pypdfium2.PdfDocument(content)
        except pypdfium2.PdfiumError as error:
            if error.err_code in _NEEDS_PASSWORD:
                raise PasswordNeeded("The PDF is encrypted; save a copy without a password.") from error
            raise CorruptDocument("The PDF is damaged or truncated; get an intact copy.") from error
        try:
            return _Opened(
                missing_pages=_missing_pages(document, options),
                has_attachments=document.count_attachments() > 0,
                is_encrypted=pypdfium2.raw.FPDF_GetSecurityHandlerRevision(document) >= 0,
            )
        finally:
            document.close()


def _missing_pages(document: Any, options: ParsingOptions) -> list[int]:
    pages = len(document)
    if pages == 0:
        raise CorruptDocument("The PDF is damaged or truncated: it has no page; get an intact copy.")
    if pages > options.max_pages:
        raise TooManyPages(
            f"The PDF has {pages} pages, more than the {options.max_pages} allowed; "
            "split it or raise parsing.max_pages."
        )
    missing = [at + 1 for at in range(pages) if not _has_page(document, at, options)]
    if len(missing) == pages:
        raise CorruptDocument(
            "The PDF is damaged or truncated: none of its pages is there; get an intact copy."
        )
    return missing


def _has_page(document: Any, at: int, options: ParsingOptions) -> bool:
    """False for a page that the tree only claims to have; refuses one that is too large to be drawn."""
    import pypdfium2

    try:
        width, height = document.get_page_size(at)
    except pypdfium2.PdfiumError:
        return False
    if width * height * DRAWN_SCALE**2 > options.max_image_megapixels * MEGAPIXEL:
        raise DecompressionBomb(
            f"Page {at + 1} of the PDF is {width:.0f} x {height:.0f} points; drawn, it has more than the "
            f"{options.max_image_megapixels} million pixels allowed; scale it down or raise "
            "parsing.max_image_megapixels."
        )
    return True
