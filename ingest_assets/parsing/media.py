"""Media type detection by a file's first bytes, then by its name. Opens no file."""

import re
import struct
from pathlib import PurePosixPath

UNKNOWN = "application/octet-stream"
PDF = "application/pdf"
OLE = "application/x-ole-storage"
_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = _OFFICE + "wordprocessingml.document"
PPTX = _OFFICE + "presentationml.presentation"
XLSX = _OFFICE + "spreadsheetml.sheet"
_ODF = "application/vnd.oasis.opendocument."
JATS = "application/jats+xml"
PATENT = "application/x-uspto+xml"
MHTML = "multipart/related"
BOXNOTE = "application/vnd.box.boxnote"
XML = "application/xml"
SVG = "image/svg+xml"
OUTLOOK = "application/vnd.ms-outlook"
XLSB = "application/vnd.ms-excel.sheet.binary.macroenabled.12"

HEAD_BYTES = 8192  # of a file: enough for magic bytes and the first members of an archive
MAX_ZERO_SHARE = 0.01  # of the first bytes; a text may contain a few zeros by accident
MIN_UTF16_CHARS = 8  # with fewer, UTF-16 cannot be detected

# The supported media types, with their names in Docling's `InputFormat`.
DOCLING_FORMATS: dict[str, str] = {
    PDF: "pdf",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "md",
    "text/plain": "md",
    DOCX: "docx",
    PPTX: "pptx",
    XLSX: "xlsx",
    "text/csv": "csv",
    "text/asciidoc": "asciidoc",
    "text/vtt": "vtt",
    "text/x-tex": "latex",
    "application/epub+zip": "epub",
    "message/rfc822": "email",
    OUTLOOK: "email",
    JATS: "xml_jats",
    PATENT: "xml_uspto",
    MHTML: "mhtml",
    BOXNOTE: "boxnote",
    "application/json": "json_docling",
    _ODF + "text": "odt",
    _ODF + "spreadsheet": "ods",
    _ODF + "presentation": "odp",
    _ODF + "text-template": "odt",
    _ODF + "spreadsheet-template": "ods",
    _ODF + "presentation-template": "odp",
    "image/png": "image",
    "image/jpeg": "image",
    "image/tiff": "image",
    "image/gif": "image",
    "image/bmp": "image",
    "image/webp": "image",
}

_SUFFIXES: dict[str, str] = {
    suffix: mime
    for mime, suffixes in {
        PDF: "pdf",
        "text/html": "html htm",
        "application/xhtml+xml": "xhtml",
        "text/markdown": "md markdown qmd rmd",
        "text/plain": "txt text log",
        DOCX: "docx docm dotx dotm",
        PPTX: "pptx pptm potx potm ppsx ppsm",
        XLSX: "xlsx xlsm xltx xltm",
        "text/csv": "csv",
        "text/asciidoc": "adoc asciidoc asc",
        "text/vtt": "vtt",
        "text/x-tex": "tex latex",
        "application/epub+zip": "epub",
        "message/rfc822": "eml",
        XML: "xml",
        JATS: "nxml",
        MHTML: "mhtml mht",
        BOXNOTE: "boxnote",
        SVG: "svg",
        "application/json": "json",
        _ODF + "text": "odt ott",
        _ODF + "spreadsheet": "ods ots",
        _ODF + "presentation": "odp otp",
        "application/msword": "doc dot",
        "application/vnd.ms-excel": "xls xlt",
        "application/vnd.ms-powerpoint": "ppt pot pps",
        OUTLOOK: "msg",
        "application/rtf": "rtf",
        "application/zip": "zip",
        "image/png": "png",
        "image/jpeg": "jpg jpeg",
        "image/tiff": "tif tiff",
        "image/gif": "gif",
        "image/bmp": "bmp",
        "image/webp": "webp",
    }.items()
    for suffix in suffixes.split()
}

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"{\\rtf", "application/rtf"),
    (b"\x1f\x8b", "application/gzip"),
    (b"WEBVTT", "text/vtt"),
    (b"%!PS", "application/postscript"),
)
# The same for unsupported binary files. They also need zero bytes, since a text may start like this.
_BINARY_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/x-msdownload"),
    (0, b"\xca\xfe\xba\xbe", "application/java-vm"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (0, b"\xfd7zXZ", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (257, b"ustar", "application/x-tar"),
    (0, b"SQLite format 3", "application/vnd.sqlite3"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/x-matroska"),
)
IWORK = "application/x-iwork"
_ZIP_PARTS = ((b"word/", DOCX), (b"ppt/", PPTX), (b"xl/", XLSX), (b"Index/Document.iwa", IWORK))
_ZIP_TYPES = {
    *(DOCX, PPTX, XLSX, "application/epub+zip"),
    *(_ODF + "text", _ODF + "spreadsheet", _ODF + "presentation"),
}
_OLE_TYPES = {
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    OUTLOOK,
}
_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_TEXT_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_LATEX = re.compile(rb"\A(?:\s|%[^\n]*\n)*\\document(?:class|style)\b")
_PATENTS = (b"<!doctype us-patent-", b"<!doctype patdoc", b"<!doctype patent-application-publication")
_SAVED_PAGE = (b"\nsnapshot-content-location:", b"\nfrom: <saved by ", b'\nfrom: "saved by ')
_MAIL_HEADER = re.compile(rb"[!-9;-~]+:[ \t]")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_MAIL_SIGNS = (b"\nfrom:", b"\nreceived:", b"\nmime-version:", b"\nmessage-id:", b"\nreturn-path:")
_XML_PROLOG = re.compile(rb"\A(?:\s|<\?xml[^>]*\?>|<!--.*?-->)*", re.DOTALL)
_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]{1,100}")  # a damaged file may declare anything


def media_type(name: str, head: bytes) -> str:
    """Return the media type of a file with this name and first bytes; `UNKNOWN` if it is not recognized."""
    suffix = PurePosixPath(name.lower()).suffix
    by_name = _SUFFIXES.get(suffix.lstrip("."))
    if by_bytes := _by_bytes(head, by_name):
        return by_bytes
    is_binary = _is_binary(head)
    if by_name is None:
        return "text/plain" if head and not suffix and not is_binary else UNKNOWN  # README, LICENSE
    is_text = by_name.startswith("text/") or by_name in ("message/rfc822", MHTML, "application/xhtml+xml")
    return UNKNOWN if is_text and is_binary else by_name


def _by_bytes(head: bytes, by_name: str | None) -> str | None:
    if head.lstrip().startswith(b"%PDF-"):
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return _zip_type(head, by_name)
    if head.startswith(_OLE_MAGIC):
        return by_name if by_name in _OLE_TYPES else OLE
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[:2] == b"BM" and head[6:10] == b"\x00\x00\x00\x00":
        return "image/bmp"
    known = [mime for magic, mime in _MAGIC if head.startswith(magic)]
    if not known and _is_binary(head):
        known = [mime for at, magic, mime in _BINARY_MAGIC if head[at : at + len(magic)] == magic]
    return known[0] if known else _markup_type(head, by_name) or _text_type(head, by_name)


def _zip_type(head: bytes, by_name: str | None) -> str:
    """Distinguish Office, EPUB and ODF files by the names of their first members."""
    names = []
    for match in re.finditer(rb"PK\x03\x04", head):
        header = head[match.start() : match.start() + 30]
        if len(header) == 30:
            length = struct.unpack_from("<H", header, 26)[0]
            names.append(head[match.start() + 30 : match.start() + 30 + length])
    if names[:1] == [b"mimetype"]:
        declared = head[38:].split(b"PK", 1)[0].decode("ascii", "replace").strip()
        if declared in DOCLING_FORMATS or (declared.startswith(_ODF) and _TYPE.fullmatch(declared)):
            return declared
    if b"xl/workbook.bin" in names:
        return XLSB
    for prefix, mime in _ZIP_PARTS:
        if any(member.startswith(prefix) for member in names):
            return mime
    return by_name if by_name in _ZIP_TYPES else "application/zip"


def _markup_type(head: bytes, by_name: str | None) -> str | None:
    text = head.removeprefix(b"\xef\xbb\xbf")
    body = text[_XML_PROLOG.match(text).end() :].lower()  # type: ignore[union-attr]  # matches the empty string
    if body.startswith((b"<!doctype html", b"<html")):
        return "application/xhtml+xml" if text.lstrip().startswith(b"<?xml") else "text/html"
    if body.startswith((b"<!doctype article", b"<article")) and b"<?xml" in text[:200]:
        return JATS
    if body.startswith(_PATENTS):
        return PATENT
    if body.startswith((b"<!doctype svg", b"<svg")):
        return SVG
    return XML if by_name is None and text.lstrip().startswith(b"<?xml") else None


def _text_type(head: bytes, by_name: str | None) -> str | None:
    """Recognize LaTeX, e-mails and saved web pages without a telling suffix."""
    if by_name not in (None, "text/plain"):
        return None
    if _LATEX.match(head):
        return "text/x-tex"
    headers = b"\n" + _BLANK_LINE.split(head, maxsplit=1)[0].lower()
    is_mail = _MAIL_HEADER.match(head) and sum(sign in headers for sign in _MAIL_SIGNS) >= 2
    is_page = b"multipart/related" in headers and any(sign in headers for sign in _SAVED_PAGE)
    return (MHTML if is_page else "message/rfc822") if is_mail or is_page else None


def _is_binary(head: bytes) -> bool:
    """True if there are too many zero bytes for a text."""
    has_zeros = head.count(0) > MAX_ZERO_SHARE * len(head)
    return has_zeros and not head.startswith(_TEXT_BOMS) and not utf16_without_bom(head)


def utf16_without_bom(head: bytes) -> str:
    """Return the UTF-16 encoding if nearly all zero bytes are at even or at odd positions, else ''."""
    pairs = len(head) // 2
    zeros = {"utf-16-be": head[: 2 * pairs : 2].count(0), "utf-16-le": head[1 : 2 * pairs : 2].count(0)}
    fewer, more = sorted(zeros, key=lambda name: zeros[name])
    is_utf16 = pairs >= MIN_UTF16_CHARS and zeros[more] > 0.7 * pairs and zeros[fewer] <= 0.01 * pairs
    return more if is_utf16 else ""
