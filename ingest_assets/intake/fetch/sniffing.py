"""What was fetched, by its bytes: names and headers may only choose among what the bytes allow."""

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
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins with the mark of UTF-16, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# By which browsers know HTML (WHATWG MIME Sniffing), and a few that pages without a head begin with.
_TAGS = rb"html|head|body|title|meta|link|style|script|iframe|div|table|h[1-6]|p|br|a|b|font"
_TAG = re.compile(
    rb"\A\s*(?:<!--.*?-->\s*)*<(?:" + _TAGS + rb")[\s/>]",
    re.DOTALL | re.IGNORECASE,
)
_XML_CHARSET = re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']")
_META_CHARSET = re.compile(rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)
_SUFFIXES = mimetypes.MimeTypes()  # Python's own table: the system's differs between machines
_FALLBACK_CHARSET = "windows-1252"  # what browsers take a page for that says nothing of itself

Sniffer = Callable[[str, bytes], str]
"""Media type of a file by its name and its first bytes, as `parsing.media.media_type` tells it."""


def media_type(head: bytes, names: Iterable[str | None], declared: str | None, sniff: Sniffer) -> str:
    """The kind of a document. A claim that the bytes do not bear out is dropped: HTML is HTML."""
    mark = _mark(head)
    text = head.decode(mark, "ignore").encode("utf-8") if mark else head  # two-byte letters hide a first tag
    by_bytes = sniff("", text)
    suffixes = [PurePosixPath(name).suffix.lower() for name in names if name]
    if declared not in (None, PLAIN):  # `text/plain` is what servers say of all they do not know
        suffixes.append(_SUFFIXES.guess_extension(str(declared)) or "")
    for suffix in filter(None, suffixes):
        claimed = sniff(f"document{suffix}", text)
        # Archives hold Office files, and plain text holds every kind of text; all else shows what it is.
        if is_text(claimed) if by_bytes == PLAIN else by_bytes in _ARCHIVES:
            return claimed
    return HTML if by_bytes == PLAIN and _TAG.match(text) else by_bytes


def is_text(kind: str) -> bool:
    """True for kinds that have a charset."""
    return kind.startswith("text/") or kind.endswith("+xml") or kind in _TEXTUAL


def charset(path: Path, head: bytes, declared: str | None) -> str:
    """The charset of a text: its mark, else UTF-8 if all of it is, else what is claimed and possible."""
    if marked := _mark(head):
        return marked
    has_escapes = b"\x1b" in head  # ISO-2022 writes Japanese in ASCII bytes
    if is_utf8(path) and not has_escapes:
        return "utf-8"
    inside = (_XML_CHARSET.search(head), _META_CHARSET.search(head))
    claims = [*(found[1].decode("ascii") for found in inside if found), declared or ""]
    known = filter(None, map(_known, claims))
    return next((name for name in known if _decodes(head, name)), _FALLBACK_CHARSET)


def _mark(head: bytes) -> str | None:
    return next((name for mark, name in _BOMS if head.startswith(mark)), None)


def _known(name: str) -> str | None:
    """The charset's name if Python has it and it is one for text; UTF-7 is a trick, not a charset."""
    try:
        found = codecs.lookup(name).name
        "".encode(found)
    except (LookupError, ValueError):
        return None
    if found in ("iso8859-1", "ascii"):
        return _FALLBACK_CHARSET  # what the web means by these names
    return None if found in ("utf-7", "idna", "punycode") or found.endswith("escape") else found


def _decodes(head: bytes, name: str) -> bool:
    """The last letter of the head may be cut in half."""
    try:
        codecs.getincrementaldecoder(name)().decode(head)
    except UnicodeError:
        return False
    return True


def is_utf8(path: Path) -> bool:
    """True when every byte of the file is UTF-8; reads it in constant memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as stream:
            while block := stream.read(1024 * 1024):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
