"""Which checks are for which format."""

from dataclasses import dataclass

from ingest_assets.parsing import media
from ingest_assets.parsing.errors import UnsupportedDocument
from ingest_assets.parsing.guard.archives import (
    as_document,
    check_archive,
    check_outlook,
    damage_named,
    ole_type,
    refuse_no_slides,
)
from ingest_assets.parsing.guard.images import check_image
from ingest_assets.parsing.guard.markup import (
    check_csv,
    check_entities,
    check_web_page,
    decode_text,
    refuse_deep_quotes,
)
from ingest_assets.parsing.guard.pdf import check_pdf
from ingest_assets.settings.parsing import ParsingOptions

_ARCHIVES = ("docx", "pptx", "xlsx", "odt", "ods", "odp", "epub")
_TEXTS = ("md", "csv", "asciidoc", "vtt", "latex", "boxnote", "json_docling")
_JATS = (b"JATS-journalpublishing", b"JATS-archive")
_ADVICE = {
    "application/msword": "save it as DOCX or PDF",
    "application/rtf": "save it as DOCX or PDF",
    "application/vnd.ms-excel": "save it as XLSX or CSV",
    media.XLSB: "save it as XLSX or CSV",
    "application/vnd.ms-powerpoint": "save it as PPTX or PDF",
    "application/zip": "unpack it",
    "application/gzip": "unpack it",
    "application/x-tar": "unpack it",
    "application/x-7z-compressed": "unpack it",
    "application/vnd.rar": "unpack it",
    "application/x-bzip2": "unpack it",
    "application/x-xz": "unpack it",
    "application/zstd": "unpack it",
}


@dataclass(frozen=True, slots=True)
class Inspected:
    """Bytes that a parser may see, mended where they had to be, and what there is to say of them."""

    content: bytes
    warnings: tuple[str, ...] = ()


def docling_format(mime: str, content: bytes, options: ParsingOptions) -> str:
    """Docling's name for this media type; what it cannot read is refused with its reason."""
    mime = ole_type(content, mime)
    kind = media.DOCLING_FORMATS.get(mime)
    if kind is not None:
        return kind
    if mime.endswith("xml"):
        check_entities("The XML", content, options)  # a bomb is called one, whatever it says it is
    what = "Files of no kind known here" if mime == media.UNKNOWN else f"Files of type {mime}"
    raise UnsupportedDocument(
        f"{what} are not read; {_ADVICE.get(mime, 'convert it to PDF, DOCX, HTML or Markdown')}."
    )


def inspect(kind: str, content: bytes, options: ParsingOptions) -> Inspected:
    """Look at the bytes as what they say they are, without parsing them; raises a `ParseError`."""
    if kind == "pdf":
        return Inspected(content, check_pdf(content, options))
    if kind == "image":
        check_image(content, options)
        return Inspected(content)
    if kind in ("email", "mhtml"):  # HTML in them is checked when it is flattened
        if kind == "email":
            check_outlook(content, options)
        return Inspected(content)
    if kind in _ARCHIVES:
        warnings = check_archive(content, options)
        with damage_named():  # so far, only the beginnings of parts were unpacked
            if kind == "pptx":
                refuse_no_slides(content)
            return Inspected(as_document(content), warnings)
    if kind == "html":
        return Inspected(*check_web_page(content, options))
    if kind in ("xml_jats", "xml_uspto"):
        return _inspect_xml(kind, content, options)
    if kind in _TEXTS:
        return _inspect_text(kind, content)
    raise UnsupportedDocument(f"Files of kind {kind} are not read: no checks are written for them.")


def _inspect_text(kind: str, content: bytes) -> Inspected:
    decoded = decode_text(content)
    if kind == "md":
        refuse_deep_quotes(decoded.text)
    elif kind == "csv":
        check_csv(decoded.text)
    elif kind == "json_docling" and '"DoclingDocument"' not in decoded.text:
        raise UnsupportedDocument(
            "JSON is read only when it is a document of Docling's; convert it to PDF, DOCX, HTML or Markdown."
        )
    return Inspected(content if decoded.is_as_declared else decoded.text.encode(), decoded.warnings)


def _inspect_xml(kind: str, content: bytes, options: ParsingOptions) -> Inspected:
    warnings = check_entities("The XML", content, options)
    if kind == "xml_uspto":
        return Inspected(decode_text(content).text.encode(), warnings)
    if not any(name in content for name in _JATS):
        raise UnsupportedDocument(
            "XML is read only when it names the JATS DTD; convert it to PDF, DOCX, HTML or Markdown."
        )
    return Inspected(content, warnings)
