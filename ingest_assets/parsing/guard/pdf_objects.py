"""A PDF's objects as they lie in the file, read without trust: no cross-reference table, no recursion.

Enough to see what a file holds before a parser does; not enough to read it. What cannot be made out is left
out: the parsers behind this have time and memory limits of their own.
"""

import base64
import binascii
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from ingest_assets.parsing.errors import DecompressionBomb
from ingest_assets.parsing.guard.limits import MEBIBYTE, MEGAPIXEL, most_bytes, refuse_bomb
from ingest_assets.settings.parsing import ParsingOptions

_OBJECT = re.compile(rb"(?<!\d)(\d{1,10})\s+\d{1,5}\s+obj\b")
_BODY_END = re.compile(rb"\bendobj\b|\bstream\r?\n|(?<!\d)\d{1,10}\s+\d{1,5}\s+obj\b")
_LENGTH = re.compile(rb"/Length\s+(\d{1,12})(?!\s+\d+\s+R)")
_FIRST = re.compile(rb"/First\s+(\d{1,9})")
_FILTER = re.compile(rb"/Filter\s*(\[[^\]]*\]|/[A-Za-z0-9]+)")
_NAME = re.compile(rb"/([A-Za-z0-9]+)")
_ESCAPE = re.compile(rb"#([0-9A-Fa-f]{2})")
_FLATE = (b"FlateDecode", b"Fl")
_ASCII = (b"ASCII85Decode", b"A85", b"ASCIIHexDecode", b"AHx")
_PIECE = 1024 * 1024  # bytes that are unfolded before the limit is looked at again
_ZLIB_HEADER_BYTES = 2


@dataclass(frozen=True, slots=True)
class PdfObject:
    """One object: its dictionary, or whatever it is, as bytes; and of a stream what is packed in it."""

    number: int
    head: bytes
    packed: memoryview | None = field(default=None, repr=False)

    @property
    def filters(self) -> tuple[bytes, ...]:
        """The names of the stream's filters, first to be undone first."""
        found = _FILTER.search(self.head)
        return tuple(_NAME.findall(found[1])) if found else ()

    @property
    def is_inflatable(self) -> bool:
        """True for a stream with nothing but filters that are undone here."""
        return self.packed is not None and all(name in _FLATE + _ASCII for name in self.filters)


def read_objects(content: bytes) -> Iterator[PdfObject]:
    """All objects in the order of the file; when one comes twice, the later one counts."""
    whole = memoryview(content)
    found = _OBJECT.search(content)
    while found:
        number, start = int(found[1]), found.end()
        end = _BODY_END.search(content, start)
        head = unescaped(content[start : end.start() if end else start + _PIECE])
        after = end.start() if end else len(content)
        packed = None
        if end and end[0].startswith(b"stream"):
            after = _stream_end(content, head, end.end())
            packed = whole[end.end() : after]
        yield PdfObject(number, head, packed)
        found = _OBJECT.search(content, after)


def unpack_objects(stream: PdfObject, unpacked: bytes) -> Iterator[PdfObject]:
    """The objects that an object stream holds; none is a stream itself."""
    first = _FIRST.search(stream.head)
    start = int(first[1]) if first else 0
    table = [int(word) for word in unpacked[:start].split() if word.isdigit()]
    ends = [*table[3::2], len(unpacked)]
    for number, offset, end in zip(table[::2], table[1::2], ends, strict=False):
        yield PdfObject(number, unescaped(unpacked[start + offset : start + end]))


def _stream_end(content: bytes, head: bytes, start: int) -> int:
    length = _LENGTH.search(head)
    if length:
        end = start + int(length[1])
        if content[end : end + 12].lstrip().startswith(b"endstream"):
            return end
    end = content.find(b"endstream", start)
    return end if end >= 0 else len(content)


def unescaped(head: bytes) -> bytes:
    """Names in plain spelling: `/J#61vaScript` is `/JavaScript`."""
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), head) if b"#" in head else head


def inflate(stream: PdfObject) -> Iterator[bytes]:
    """What the stream unfolds to, piece by piece; raises `zlib.error` where it is damaged."""
    pieces: Iterable[bytes] = [] if stream.packed is None else [bytes(stream.packed)]
    for name in stream.filters:
        pieces = _inflated(pieces) if name in _FLATE else _from_ascii(pieces, name)
    return iter(pieces)


def _inflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Without the checksum at the end, which many writers get wrong and no reader minds."""
    unpacker, header = zlib.decompressobj(-15), b""
    for piece in pieces:
        missing = _ZLIB_HEADER_BYTES - len(header)
        header, rest = header + piece[:missing], piece[missing:]
        if rest and header[0] & 0x0F != zlib.DEFLATED:
            raise zlib.error("not deflated")
        while rest and not unpacker.eof:
            yield unpacker.decompress(rest, _PIECE)
            rest = unpacker.unconsumed_tail
        if unpacker.eof:
            return


def _from_ascii(pieces: Iterable[bytes], name: bytes) -> Iterator[bytes]:
    packed = b"".join(b"".join(pieces).split())
    try:
        if name in _ASCII[:2]:
            yield base64.a85decode(packed.removeprefix(b"<~").split(b"~")[0])
        else:
            digits = packed.split(b">")[0]
            yield binascii.unhexlify(digits + b"0" * (len(digits) % 2))
    except ValueError:
        return


# What a PDF holds, by its objects: every stream is unfolded once and counted, and almost nothing is kept.

_KEPT_BYTES = 16 * MEBIBYTE  # of a form or an object stream, to be looked into
_BYTES_PER_PIXEL = 4  # as CMYK with 8 bits has
_MOST_DEFLATED = 1032  # times its size: no stream of that kind unfolds to more
_PICTURE = re.compile(rb"/Subtype\s*/Image\b")
_FORM = re.compile(rb"/Subtype\s*/Form\b")
_OBJECTS = re.compile(rb"/Type\s*/ObjStm\b")
_SCRIPT = re.compile(rb"/(?:JavaScript|JS)\b")
_ATTACHMENT = re.compile(rb"/(?:EmbeddedFiles?|FileAttachment)\b")


@dataclass(slots=True)
class PdfContents:
    """A PDF as its objects show it, by their numbers."""

    heads: dict[int, bytes] = field(default_factory=dict)
    streams: set[int] = field(default_factory=set)
    damaged: set[int] = field(default_factory=set)
    forms: dict[int, bytes] = field(default_factory=dict)
    has_scripts: bool = False
    has_attachments: bool = False

    def note(self, each: PdfObject) -> None:
        """Remember an object; when one comes twice, the later one counts."""
        self.heads[each.number] = each.head
        self.has_scripts = self.has_scripts or _SCRIPT.search(each.head) is not None
        self.has_attachments = self.has_attachments or _ATTACHMENT.search(each.head) is not None
        self.damaged.discard(each.number)
        if each.packed is not None:
            self.streams.add(each.number)


def read_contents(content: bytes, options: ParsingOptions) -> PdfContents:
    """The objects of a PDF that is not encrypted; refuses one whose streams unfold to too much."""
    found, total = PdfContents(), 0
    for each in read_objects(content):
        found.note(each)
        if each.is_inflatable:
            total += _unfold(each, found, options)
            refuse_bomb("The PDF", len(content), total, options)
    return found


def _unfold(stream: PdfObject, found: PdfContents, options: ParsingOptions) -> int:
    """How long the stream is; of pictures nothing counts, as long as they have no more than their pixels."""
    is_picture, is_form = _PICTURE.search(stream.head), _FORM.search(stream.head)
    is_objects = _OBJECTS.search(stream.head)
    packed = len(stream.packed or b"")
    most_pixels = options.max_image_megapixels * MEGAPIXEL * _BYTES_PER_PIXEL
    limit = most_pixels if is_picture else most_bytes(packed, options)
    if is_picture and len(stream.filters) == 1 and packed * _MOST_DEFLATED <= limit:
        return 0
    size, kept = 0, bytearray()
    try:
        for piece in inflate(stream):
            size += len(piece)
            if size > limit:
                refuse_bomb("A stream of the PDF", packed, inf if is_picture else size, options)
            if (is_form or is_objects) and size <= _KEPT_BYTES:
                kept += piece
    except zlib.error:
        found.damaged.add(stream.number)
    if is_form:
        found.forms[stream.number] = bytes(kept)
    for each in unpack_objects(stream, bytes(kept)) if is_objects else ():
        found.note(each)
    return 0 if is_picture else size


# Who draws whom in a PDF: pages whose content is damaged, and forms that draw each other without end.

MAX_DRAWINGS = 100_000  # of forms, for what one form draws
MAX_FORM_DEPTH = 50  # what goes deeper counts as endless
_ANY_NAME = rb"/([^\s/\[\]<>(){}%]+)"
_REFERENCE = rb"(\d{1,10})\s+\d{1,5}\s+R\b"
_DRAWS = re.compile(_ANY_NAME + rb"\s+Do\b")
_ENTRY = re.compile(_ANY_NAME + rb"\s+" + _REFERENCE)
_ALL = re.compile(_REFERENCE)
_KIDS = re.compile(rb"/Kids\s*(?:\[([^\]]*)\]|" + _REFERENCE + rb")")
_CONTENTS = re.compile(rb"/Contents\s*(?:\[([^\]]*)\]|" + _REFERENCE + rb")")
_ROOT = re.compile(rb"/Type\s*/Catalog\b")
_PAGES = re.compile(rb"/Pages\s+" + _REFERENCE)


def damaged_pages(contents: PdfContents) -> tuple[list[int], int]:
    """Pages, from 1, of whose content nothing can be unpacked; and how many pages were found."""
    pages = _page_numbers(contents)
    whole = contents.streams - contents.damaged
    damaged = []
    for at, number in enumerate(pages, 1):
        parts = _referred(_CONTENTS, contents.heads.get(number, b""), contents.heads)
        if parts and whole.isdisjoint(parts):
            damaged.append(at)
    return damaged, len(pages)


def _page_numbers(contents: PdfContents) -> list[int]:
    """The object numbers of the pages in reading order, whatever loops the tree has."""
    roots = [head for head in contents.heads.values() if _ROOT.search(head)]
    top = _PAGES.search(roots[-1]) if roots else None
    waiting, seen, pages = [int(top[1])] if top else [], set[int](), list[int]()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        head = contents.heads.get(number, b"")
        if _KIDS.search(head):
            waiting += reversed(_referred(_KIDS, head, contents.heads))
        elif number in contents.heads:
            pages.append(number)
    return pages


def _referred(key: re.Pattern[bytes], head: bytes, heads: Mapping[int, bytes]) -> list[int]:
    """The objects that an entry names: one, an array of them, or an object that is such an array."""
    found = key.search(head)
    if found is None:
        return []
    array = found[1]
    if array is None:
        inner = heads.get(int(found[2]), b"").strip()
        array = inner if inner.startswith(b"[") else None
    return [int(found[2])] if array is None else [int(number) for number in _ALL.findall(array)]


def refuse_endless_drawing(contents: PdfContents) -> None:
    """Forms may draw forms; some are made to do so for ever, or a thousand million times."""
    drawn = {number: _drawn_by(number, contents) for number in contents.forms}
    counts: dict[int, float] = dict.fromkeys(drawn, 1.0)
    for _ in range(MAX_FORM_DEPTH):  # each round looks one level deeper
        deeper = {
            number: 1 + sum(times * counts.get(other, 0) for other, times in others.items())
            for number, others in drawn.items()
        }
        if deeper == counts:
            break
        counts = deeper
    else:
        counts = dict.fromkeys(drawn, inf)
    if any(count > MAX_DRAWINGS for count in counts.values()):
        raise DecompressionBomb(
            "The PDF draws its own parts within each other, endlessly or far too often; print it anew."
        )


def _drawn_by(form: int, contents: PdfContents) -> Counter[int]:
    """Which objects a form draws, and how often, by the names in its own resources."""
    names = Counter(_DRAWS.findall(contents.forms[form]))
    if not names:
        return Counter()
    known = {name: int(number) for name, number in _ENTRY.findall(_resources(form, contents.heads))}
    return Counter({known[name]: times for name, times in names.items() if name in known})


def _resources(form: int, heads: Mapping[int, bytes]) -> bytes:
    """Everything that the form's dictionary leads to in three steps: its resources may be shared."""
    text = heads.get(form, b"")
    for _ in range(3):
        indirect = [int(found[1]) for found in re.finditer(rb"/(?:Resources|XObject)\s+" + _REFERENCE, text)]
        text += b"".join(heads.get(number, b"") for number in indirect if heads.get(number, b"") not in text)
    return text
