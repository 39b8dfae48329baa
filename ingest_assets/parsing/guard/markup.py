"""Checks of text and markup: encoding, expanded entities, nesting depth and table size."""

import codecs
import csv
import html
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from math import inf
from typing import Any

from ingest_assets.parsing.errors import CorruptDocument, DecompressionBomb, GarbledText
from ingest_assets.parsing.guard.limits import MEBIBYTE, check_table_size, check_unpacked_size
from ingest_assets.parsing.media import utf16_without_bom
from ingest_assets.settings.parsing import ParsingOptions

MAX_BAD_SHARE = 0.1  # of the characters; text with more is garbled
MAX_ACCENTED_SHARE = 0.2  # of the bytes; text with more is not in a Western language (Windows-1252)
MIN_ACCENTED = 32  # bytes; with fewer, detection is unreliable
_ENCODINGS = (
    *("cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("koi8_r", "koi8_u", "iso8859_5", "cp932", "euc_jp", "gb18030", "big5", "cp949"),
)
_REPLACED = "W_TEXT_REPLACED"
_SAMPLE_BYTES = 65536  # of a text, for the detection of its encoding
_BAD = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffd-\uffff]")
_ACCENTED = re.compile(b"[\x80-\xff]")
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded text and warnings; `is_as_declared` when any reader would decode the bytes in this way."""

    text: str
    warnings: tuple[str, ...] = ()
    is_as_declared: bool = False


def decode_text(content: bytes, declared: str = "") -> Decoded:
    """Decode by byte-order mark, declared encoding, UTF-8 or detection, in this order; else `GarbledText`."""
    decoded = _decoded(content, declared)
    if "\x00" in decoded.text:  # markup parsers fail at a zero byte
        text = decoded.text.replace("\x00", "\ufffd")
        others = (warning for warning in decoded.warnings if _REPLACED not in warning)
        decoded = Decoded(text, (*others, _replaced(text)))
    bad = len(_BAD.findall(decoded.text))
    if bad > MAX_BAD_SHARE * max(1, len(decoded.text)):
        raise GarbledText(
            f"The file is not readable text: {bad} of {len(decoded.text)} characters are invalid (limit "
            f"{MAX_BAD_SHARE:.0%}). Replace it with an intact copy."
        )
    return decoded


def _decoded(content: bytes, declared: str) -> Decoded:
    for bom, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(bom):
            return _decode_as(content[len(bom) :], encoding)
    if utf16 := utf16_without_bom(content[:_SAMPLE_BYTES]):
        return replace(_decode_as(content, utf16), is_as_declared=False)
    for encoding in (declared, "utf-8"):
        if encoding and (text := _strictly(content, encoding)) is not None:
            return Decoded(text, is_as_declared=True)
    text = content.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = sum(character > "\x7f" for character in text) - broken
    return Decoded(text, (_replaced(text),)) if whole > broken else _detect(content)


def _decode_as(content: bytes, encoding: str) -> Decoded:
    text = _strictly(content, encoding)
    if text is not None:
        return Decoded(text, is_as_declared=encoding == "utf-8")
    text = content.decode(encoding, "replace")
    return Decoded(text, (_replaced(text),))


def _detect(content: bytes) -> Decoded:
    """Decode as Windows-1252 if most bytes are ASCII, else in the encoding that fits best."""
    sample = content[:_SAMPLE_BYTES]
    encoding = "windows-1252"
    if len(_ACCENTED.findall(sample)) > max(MAX_ACCENTED_SHARE * len(sample), MIN_ACCENTED):
        from charset_normalizer import from_bytes

        best = from_bytes(sample, cp_isolation=list(_ENCODINGS)).best()
        if best is None:
            raise GarbledText("The text is in an unknown encoding. Save it as UTF-8.")
        encoding = best.encoding
    text = content.decode(encoding, "replace")
    return Decoded(text, (f"W_TEXT_ENCODING: not UTF-8, read as {encoding}",))


def _strictly(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _replaced(text: str) -> str:
    return f"{_REPLACED}: {text.count(chr(0xFFFD))} characters could not be decoded"


# XML entities, internal and external. They are counted, never expanded or fetched.

# Lower than for archives: a markup parser needs more memory per byte.
HARMLESS_MARKUP_BYTES = MEBIBYTE
MAX_ENTITY_DEPTH = 50  # deeper entities count as endless
_NAME = r"[^\s;&%\"'<>]+"
_DECLARATION = re.compile(
    rf"<!ENTITY\s+(?:%\s+)?({_NAME})\s+(?:\"([^\"]*)\"|'([^']*)'|(?:SYSTEM|PUBLIC)\b)", re.IGNORECASE
)
_REFERENCE = re.compile(rf"[&%]({_NAME});")
_WIDE = {
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"<\x00": "utf-16-le",
    b"\x00<": "utf-16-be",
}


def check_entities(subject: str, content: bytes, options: ParsingOptions) -> tuple[str, ...]:
    """Refuse markup whose entities expand to too much; warn about external entities."""
    text = content.decode(_WIDE.get(content[:2], "latin-1"), "replace")
    if "<!ENTITY" not in text.upper():
        return ()
    values: dict[str, str] = {}
    external = 0
    for name, double, single in _DECLARATION.findall(text):
        external += not (double or single)
        values.setdefault(name, double or single)  # as in XML, the first declaration counts
    body = _DECLARATION.sub("", text)
    expanded = len(body) + _referred(Counter(_REFERENCE.findall(body)), _sizes(values))
    if expanded == inf:
        raise DecompressionBomb(
            f"{subject} has entities that contain themselves or are nested too deep "
            f"(limit {MAX_ENTITY_DEPTH}). Remove them."
        )
    check_unpacked_size(subject, len(content), expanded, options, HARMLESS_MARKUP_BYTES)
    return (f"W_XML_EXTERNAL_ENTITY: {external} declared, none fetched",) if external else ()


def _referred(used: Mapping[str, int], sizes: Mapping[str, float]) -> float:
    return sum(count * sizes.get(name, 0) for name, count in used.items())


def _sizes(values: Mapping[str, str]) -> dict[str, float]:
    """Return the length of each entity when fully expanded; infinite for one that contains itself."""
    used = {name: Counter(_REFERENCE.findall(value)) for name, value in values.items()}
    sizes: dict[str, float] = {}
    deeper: dict[str, float] = {}
    for _ in range(MAX_ENTITY_DEPTH + 1):  # each round expands one level more
        sizes, deeper = (
            deeper,
            {name: len(value) + _referred(used[name], deeper) for name, value in values.items()},
        )
        if sizes == deeper:
            break
    return {name: size if size == sizes.get(name) else inf for name, size in deeper.items()}


# Markup that is nested too deep: bombs, and pages of editors that never closed an element.

MAX_DEPTH = 200  # Docling walks elements by recursion; browsers stop at 512
FLATTENED = f"W_HTML_FLATTENED: elements more than {MAX_DEPTH} deep were taken out of those around them"
MAX_QUOTES = 100  # a long mail thread has a hundred levels; an attack has thousands
_DEEP_QUOTE = re.compile(rf"^(?:[ \t]{{0,3}}>){{{MAX_QUOTES + 1}}}", re.MULTILINE)
_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*)")
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param"}
    | {"source", "track", "wbr", "command", "keygen"}
)
_RAW = frozenset(("script", "style"))
_UNSEEN = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)


def check_quote_depth(markdown: str) -> None:
    """Refuse deeply nested quotes: the Markdown parser is recursive and gets slower with each level."""
    if _DEEP_QUOTE.search(markdown):
        raise CorruptDocument(f"Quotes are nested too deep (limit {MAX_QUOTES}). Simplify the document.")


def is_too_deep(markup: str) -> bool:
    """True if markup needs `flatten_html`. Tags in scripts and comments do not count."""
    return depth_of(markup) > MAX_DEPTH and depth_of(_UNSEEN.sub("", markup)) > MAX_DEPTH


def depth_of(markup: str) -> int:
    """Return an upper bound of the nesting depth for a parser that closes no elements implicitly."""
    open_tags: dict[str, list[int]] = {}
    depth = deepest = 0
    for closes, name in _TAG.findall(markup):
        name = name.lower()
        if not closes:
            if name not in _VOID:
                depth += 1
                open_tags.setdefault(name, []).append(depth)
                deepest = max(deepest, depth)
        elif positions := open_tags.get(name):
            while positions and positions[-1] > depth:  # closed along with an element around it
                positions.pop()
            if positions:
                depth = positions.pop() - 1
    return deepest


def flatten_html(markup: str) -> str:
    """Return the HTML with implicitly closed elements closed and none deeper than the limit."""
    from lxml import etree

    target = _Shallow()
    parser = etree.HTMLParser(target=target, huge_tree=True, recover=True, remove_comments=True)
    parser.feed(markup)
    return str(parser.close())


class _Shallow:
    """Parser target of lxml that keeps the text of too deep elements and drops their tags."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._depth = 0
        self._raw = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._raw += tag in _RAW
        if self._depth <= MAX_DEPTH and not self._raw:
            named = "".join(f' {name}="{html.escape(value or "")}"' for name, value in attributes.items())
            self._parts.append(f"<{tag}{named}>")

    def end(self, tag: str) -> None:
        if self._depth <= MAX_DEPTH and not self._raw and tag not in _VOID:
            self._parts.append(f"</{tag}>")
        self._raw -= tag in _RAW
        self._depth -= 1

    def data(self, text: str) -> None:
        if not self._raw:
            self._parts.append(html.escape(text, quote=False))

    def close(self) -> str:
        return "".join(self._parts)


# Web pages, and HTML inside other documents (books, e-mails, Markdown), which Docling reads like web pages.

_FORMATS_WITH_HTML = ("md", "epub", "email", "mhtml")
_local = threading.local()


def check_web_page(content: bytes, options: ParsingOptions) -> tuple[bytes, tuple[str, ...]]:
    """Return the page in a form that is safe to parse, and warnings; unchanged if it is safe already.

    A changed page gets a byte-order mark, which takes precedence over the declared encoding.
    """
    from bs4.dammit import EncodingDetector

    warnings = check_entities("The page", content, options)
    declared = EncodingDetector.find_declared_encoding(content, is_html=True, search_entire_document=False)
    decoded = decode_text(content, declared or "")
    warnings += decoded.warnings
    text = decoded.text
    if is_too_deep(text):
        text = flatten_html(text)
        warnings += (FLATTENED,)
    elif not decoded.warnings:
        return content, warnings
    return codecs.BOM_UTF8 + text.encode("utf-8", "replace"), warnings


def patch_html_parser() -> None:
    """Make Docling's HTML backend build its trees with `_soup`."""
    from docling.backend import html_backend

    html_backend.BeautifulSoup = _soup  # type: ignore[assignment,misc]


@contextmanager
def flatten_html_parts(file_format: str) -> Iterator[list[str]]:
    """Flatten the HTML parts of a document while it is read; yields a list that collects the warnings."""
    notes: list[str] = []
    _local.notes = notes if file_format in _FORMATS_WITH_HTML else None
    try:
        yield notes
    finally:
        _local.notes = None


def _soup(markup: Any, features: str) -> Any:
    from bs4 import BeautifulSoup

    notes = getattr(_local, "notes", None)
    if notes is not None:
        text = decode_text(markup).text if isinstance(markup, bytes) else markup
        if is_too_deep(text):
            notes.append(FLATTENED)
            markup = flatten_html(text)
    return BeautifulSoup(markup, features)


# CSV files with more cells than Docling's tables can have.

_DELIMITERS = ",;\t|:"


def check_csv(text: str) -> None:
    """Refuse a table with too many cells, counted with the possible delimiter that gives the fewest."""
    head = text[: text.find("\n") + 1 or len(text)]
    delimiters = [char for char in _DELIMITERS if char in head] or [_DELIMITERS[0]]
    check_table_size("The table", min(_cells(text, delimiter) for delimiter in delimiters))


def _cells(text: str, delimiter: str) -> int:
    """Return rows times the longest row; 0 for an invalid table, which its parser will report."""
    rows = columns = 0
    try:
        for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter):
            rows, columns = rows + 1, max(columns, len(row))
    except csv.Error:
        return 0
    return rows * columns
