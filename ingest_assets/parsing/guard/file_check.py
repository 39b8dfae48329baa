"""The checks of each format."""

from dataclasses import dataclass

from ingest_assets.parsing import media
from ingest_assets.parsing.errors import UnsupportedDocument
from ingest_assets.parsing.guard.archives import (
    check_archive,
    check_has_slides,
    check_outlook,
    ole_type,
    relabel_as_document,
    reporting_damage,
)
from ingest_assets.parsing.guard.images import check_image
from ingest_assets.parsing.guard.markup import (
    check_csv,
    check_entities,
    check_quote_depth,
    check_web_page,
    decode_text,
)
from ingest_assets.parsing.guard.pdf import check_pdf
from ingest_assets.settings.parsing import ParsingOptions

_ARCHIVES = ("docx", "pptx", "xlsx", "odt", "ods", "odp", "epub")
_TEXTS = ("md", "csv", "asciidoc", "vtt", "latex", "boxnote", "json_docling")
_JATS = (b"JATS-journalpublishing", b"JATS-archive")
_ADVICE = {
    "application/msword": "Save it as DOCX or PDF",
    "application/rtf": "Save it as DOCX or PDF",
    "application/vnd.ms-excel": "Save it as XLSX or CSV",
    media.XLSB: "Save it as XLSX or CSV",
    "application/vnd.ms-powerpoint": "Save it as PPTX or PDF",
    "application/zip": "Unpack it",
    "application/gzip": "Unpack it",
    "application/x-tar": "Unpack it",
    "application/x-7z-compressed": "Unpack it",
    "application/vnd.rar": "Unpack it",
    "application/x-bzip2": "Unpack it",
    "application/x-xz": "Unpack it",
    "application/zstd": "Unpack it",
}


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """Bytes that are safe to parse, repaired where necessary, and the warnings of the checks."""

    content: bytes
    warnings: tuple[str, ...] = ()


def docling_format(mime: str, content: bytes, options: ParsingOptions) -> str:
    """Return Docling's name of the file's format; raise when the format is not supported."""
    mime = ole_type(content, mime)
    file_format = media.DOCLING_FORMATS.get(mime)
    if file_format is not None:
        return file_format
    if mime.endswith("xml"):
        check_entities("The XML", content, options)  # an entity bomb is reported as one in any XML format
    problem = "Unknown file type" if mime == media.UNKNOWN else f"Unsupported file type {mime}"
    advice = _ADVICE.get(mime, "Convert it to PDF, DOCX, HTML or Markdown")
    raise UnsupportedDocument(f"{problem}. {advice}.")


def check_file(file_format: str, content: bytes, options: ParsingOptions) -> CheckedFile:
    """Check the bytes of a file in this format without parsing them; raises a `ParseError`."""
    if file_format == "pdf":
        return CheckedFile(content, check_pdf(content, options))
    if file_format == "image":
        check_image(content, options)
        return CheckedFile(content)
    if file_format in ("email", "mhtml"):  # HTML in them is checked while it is read
        if file_format == "email":
            check_outlook(content, options)
        return CheckedFile(content)
    if file_format in _ARCHIVES:
        warnings = check_archive(content, options)
        with reporting_damage():  # `check_archive` unpacked only the start of most members
            if file_format == "pptx":
                check_has_slides(content)
            return CheckedFile(relabel_as_document(content), warnings)
    if file_format == "html":
        return CheckedFile(*check_web_page(content, options))
    if file_format in ("xml_jats", "xml_uspto"):
        return _check_xml(file_format, content, options)
    if file_format in _TEXTS:
        return _check_text(file_format, content)
    raise UnsupportedDocument(f"Unsupported file format {file_format}: it has no checks. Convert it to PDF.")


def _check_text(file_format: str, content: bytes) -> CheckedFile:
    decoded = decode_text(content)
    if file_format == "md":
        check_quote_depth(decoded.text)
    elif file_format == "csv":
        check_csv(decoded.text)
    elif file_format == "json_docling" and '"DoclingDocument"' not in decoded.text:
        raise UnsupportedDocument(
            "Unsupported JSON: it is not a Docling document. Convert it to PDF, DOCX, HTML or Markdown."
        )
    return CheckedFile(content if decoded.is_as_declared else decoded.text.encode(), decoded.warnings)


def _check_xml(file_format: str, content: bytes, options: ParsingOptions) -> CheckedFile:
    warnings = check_entities("The XML", content, options)
    if file_format == "xml_uspto":
        return CheckedFile(decode_text(content).text.encode(), warnings)
    if not any(name in content for name in _JATS):
        raise UnsupportedDocument(
            "Unsupported XML: it does not name the JATS DTD. Convert it to PDF, DOCX, HTML or Markdown."
        )
    return CheckedFile(content, warnings)
