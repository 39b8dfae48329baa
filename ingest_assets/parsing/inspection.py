"""What is refused before a parser sees the bytes, by looking at the bytes themselves."""

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing import media
from ingest_assets.parsing.errors import (
    CorruptDocument,
    DocumentTooLarge,
    EmptyDocument,
    PasswordNeeded,
    TooManyPages,
    UnsupportedDocument,
)

MEBIBYTE = 1024 * 1024
_OLE_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_PDFIUM_NEEDS_PASSWORD = (4, 5)  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY (an unknown security handler)


def check_size(size_bytes: int, options: ParsingOptions) -> None:
    """Refuse nothing and too much."""
    if size_bytes == 0:
        raise EmptyDocument("The file is empty (0 bytes); save it again or remove it.")
    if size_bytes > options.max_mebibytes * MEBIBYTE:
        raise DocumentTooLarge(
            f"The file has {size_bytes} bytes, more than the {options.max_mebibytes} MiB allowed; "
            "split it or raise parsing.max_mebibytes."
        )


def docling_format(mime: str, content: bytes) -> str:
    """Docling's name for this media type; what it cannot read is refused with its reason."""
    kind = media.DOCLING_FORMATS.get(mime)
    if kind is not None:
        return kind
    if mime == media.OLE and _OLE_ENCRYPTED in content:
        raise PasswordNeeded("The Office file is encrypted; save a copy without a password.")
    raise UnsupportedDocument(
        f"Files of type {mime} are not read; convert it to PDF, DOCX, HTML or Markdown."
    )


def check_pdf(content: bytes, options: ParsingOptions) -> None:
    """Open the PDF as a viewer would: encrypted, damaged and overlong ones are refused."""
    from docling.utils.locks import pypdfium2_lock

    with pypdfium2_lock:  # PDFium works for one thread at a time, and Docling uses it too
        pages = _count_pages(content)
    if pages == 0:
        raise CorruptDocument("The PDF is damaged or truncated: it has no page; get an intact copy.")
    if pages > options.max_pages:
        raise TooManyPages(
            f"The PDF has {pages} pages, more than the {options.max_pages} allowed; "
            "split it or raise parsing.max_pages."
        )


def _count_pages(content: bytes) -> int:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if error.err_code in _PDFIUM_NEEDS_PASSWORD:
            raise PasswordNeeded("The PDF is encrypted; save a copy without a password.") from error
        raise CorruptDocument("The PDF is damaged or truncated; get an intact copy.") from error
    try:
        return len(document)
    finally:
        document.close()
