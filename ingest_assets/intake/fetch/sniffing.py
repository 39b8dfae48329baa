"""Detect media type and charset by content. Names and headers only choose among what the content allows."""

import codecs
import mimetypes
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

HEAD_BYTES = 8192
PLAIN = "text/plain"
HTML = "text/html"
_ARCHIVES = ("application/zip", "application/x-ole-storage")
_TEXTUAL = ("application/xml", "application/json", "application/xhtml+xml", "message/rfc822")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # starts with the BOM of UTF-16, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Tags by which browsers detect HTML (WHATWG MIME Sniffing), and a few that pages without a head start with.
_TAGS = rb"html|head|body|title|meta|link|style|script|iframe|div|table|h[1-6]|p|br|a|b|font"
_TAG = re.compile(
    rb"\A\s*(?:<!--.*?-->\s*)*<(?:" + _TAGS + rb")[\s/>]",
    re.DOTALL | re.IGNORECASE,
)
_XML_CHARSET = re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']")
_META_CHARSET = re.compile(rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)
_SUFFIXES = mimetypes.MimeTypes()  # Python's table; the system's differs between machines
_FALLBACK_CHARSET = "windows-1252"  # what browsers use for a page without a charset

Sniffer = Callable[[str, bytes], str]
"""Returns the media type for a name and the first bytes, as `parsing.media.media_type` does."""


def media_type(head: bytes, names: Iterable[str | None], declared: str | None, sniff: Sniffer) -> str:
    """Return the media type. A name or header that the content contradicts is ignored."""
    bom = _bom_charset(head)
    text = head.decode(bom, "ignore").encode("utf-8") if bom else head  # to detect tags in UTF-16
    by_bytes = sniff("", text)
    suffixes = [PurePosixPath(name).suffix.lower() for name in names if name]
    if declared not in (None, PLAIN):  # servers send `text/plain` for everything unknown
        suffixes.append(_SUFFIXES.guess_extension(str(declared)) or "")
    for suffix in filter(None, suffixes):
        claimed = sniff(f"document{suffix}", text)
        # An archive can be any Office file, and plain text any kind of text; other types are certain.
        if is_text(claimed) if by_bytes == PLAIN else by_bytes in _ARCHIVES:
            return claimed
    return HTML if by_bytes == PLAIN and _TAG.match(text) else by_bytes


def is_text(kind: str) -> bool:
    """True for media types with a charset."""
    return kind.startswith("text/") or kind.endswith("+xml") or kind in _TEXTUAL


def charset(path: Path, head: bytes, declared: str | None) -> str:
    """Return the charset of a text: by its BOM, else UTF-8 if it is valid, else a declared one that fits."""
    if by_bom := _bom_charset(head):
        return by_bom
    has_escapes = b"\x1b" in head  # ISO-2022 writes Japanese in ASCII bytes
    if is_utf8(path) and not has_escapes:
        return "utf-8"
    matches = (_XML_CHARSET.search(head), _META_CHARSET.search(head))
    claims = [*(match[1].decode("ascii") for match in matches if match), declared or ""]
    known = filter(None, map(_python_charset, claims))
    return next((name for name in known if _decodes(head, name)), _FALLBACK_CHARSET)


def _bom_charset(head: bytes) -> str | None:
    return next((name for bom, name in _BOMS if head.startswith(bom)), None)


def _python_charset(name: str) -> str | None:
    """Return Python's name of a charset; None if it is unknown or not for documents, like UTF-7."""
    try:
        codec = codecs.lookup(name).name
        "".encode(codec)
    except (LookupError, ValueError):
        return None
    if codec in ("iso8859-1", "ascii"):
        return _FALLBACK_CHARSET  # what the web means by these names
    return None if codec in ("utf-7", "idna", "punycode") or codec.endswith("escape") else codec


def _decodes(head: bytes, name: str) -> bool:
    """True if the head is valid; its last character can be incomplete."""
    try:
        codecs.getincrementaldecoder(name)().decode(head)
    except UnicodeError:
        return False
    return True


def is_utf8(path: Path) -> bool:
    """True if the whole file is valid UTF-8; reads it in constant memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as stream:
            while block := stream.read(1024 * 1024):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
