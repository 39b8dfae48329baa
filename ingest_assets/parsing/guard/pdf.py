"""PDF checks: header, encryption, page count and size, unpacked size, scripts and attachments."""

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
from ingest_assets.parsing.guard.pdf_objects import check_drawings, damaged_pages, read_contents
from ingest_assets.settings.parsing import ParsingOptions

DRAWN_SCALE = 2  # pixels per point, that is 144 dpi
_HEADER_BYTES = 1024  # where viewers look for the header
_NEEDS_PASSWORD = (4, 5)  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY (an unknown security handler)


def check_pdf(content: bytes, options: ParsingOptions) -> tuple[str, ...]:
    """Refuse a file that is not a PDF, cannot be opened or is too large; return warnings."""
    if b"%PDF-" not in content[:_HEADER_BYTES]:
        raise InvalidPdf("Not a PDF (no %PDF header). Download it again.")
    contents = read_contents(content, options)
    check_drawings(contents)
    opened = _open(content, options)
    warnings = []
    if contents.has_scripts:
        warnings.append("W_PDF_JAVASCRIPT: the PDF holds scripts; none was run")
    if contents.has_attachments or opened.has_attachments:
        warnings.append("W_PDF_EMBEDDED_FILES: the PDF holds other files; they were not read")
    # an encrypted stream cannot be unpacked here, which does not mean that it is damaged
    damaged, pages = ([], 0) if opened.is_encrypted else damaged_pages(contents)
    if damaged and len(damaged) == pages:
        raise CorruptDocument(
            f"The PDF is damaged: no content on any of its {pages} pages can be unpacked. "
            "Replace it with an intact copy."
        )
    lost = dict.fromkeys(opened.missing_pages, "is not there") | dict.fromkeys(damaged, "has damaged content")
    return (*warnings, *(f"W_PARSE_PARTIAL: page {page}: {why}" for page, why in sorted(lost.items())))


@dataclass(frozen=True, slots=True)
class _Opened:
    """Facts that PDFium reports about the file."""

    missing_pages: list[int]
    has_attachments: bool
    is_encrypted: bool


def _open(content: bytes, options: ParsingOptions) -> _Opened:
    import pypdfium2
    from docling.utils.locks import pypdfium2_lock

    with pypdfium2_lock:  # PDFium is not thread-safe, and Docling uses it too
        try:
            document = pypdfium2.PdfDocument(content)
        except pypdfium2.PdfiumError as error:
            if error.err_code in _NEEDS_PASSWORD:
                raise PasswordNeeded("The PDF is encrypted. Save a copy without a password.") from error
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
        raise CorruptDocument("The PDF has no pages; it is damaged. Replace it with an intact copy.")
    if pages > options.max_pages:
        raise TooManyPages(
            f"The PDF has too many pages: {pages} (limit {options.max_pages}). "
            "Split it or raise parsing.max_pages."
        )
    missing = [at + 1 for at in range(pages) if not _has_page(document, at, options)]
    if len(missing) == pages:
        raise CorruptDocument(
            f"The PDF is damaged or truncated: all its {pages} pages are missing. "
            "Replace it with an intact copy."
        )
    return missing


def _has_page(document: Any, index: int, options: ParsingOptions) -> bool:
    """Return False for a page that is listed but missing; raise for one too large to render."""
    import pypdfium2

    try:
        width, height = document.get_page_size(index)
    except pypdfium2.PdfiumError:
        return False
    if width * height * DRAWN_SCALE**2 > options.max_image_megapixels * MEGAPIXEL:
        raise DecompressionBomb(
            f"Page {index + 1} of the PDF is too large to render: {width:.0f} x {height:.0f} points "
            f"(limit {options.max_image_megapixels} million pixels). Scale it down or raise "
            "parsing.max_image_megapixels."
        )
    return True
