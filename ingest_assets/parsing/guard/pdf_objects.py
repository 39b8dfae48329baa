"""The objects of an untrusted PDF in file order, without its cross-reference table and without recursion.

This is enough to check a file before it is parsed, not to read it. Unrecognized content is ignored: the
parsers have their own time and memory limits.
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
from ingest_assets.parsing.guard.limits import MEBIBYTE, MEGAPIXEL, check_unpacked_size, max_unpacked_bytes
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
_PIECE = 1024 * 1024  # bytes to unpack between two checks of the limit
_ZLIB_HEADER_BYTES = 2


@dataclass(frozen=True, slots=True)
class PdfObject:
    """One object: its dictionary or value as bytes, and the packed data of a stream."""

    number: int
    head: bytes
    packed: memoryview | None = field(default=None, repr=False)

    @property
    def filters(self) -> tuple[bytes, ...]:
        """The names of the stream's filters in decoding order."""
        match = _FILTER.search(self.head)
        return tuple(_NAME.findall(match[1])) if match else ()

    @property
    def is_inflatable(self) -> bool:
        """True if `inflate` supports all filters of the stream."""
        return self.packed is not None and all(name in _FLATE + _ASCII for name in self.filters)


def read_objects(content: bytes) -> Iterator[PdfObject]:
    """Yield all objects in file order; of a repeated number, the last one counts."""
    whole = memoryview(content)
    match = _OBJECT.search(content)
    while match:
        number, start = int(match[1]), match.end()
        end = _BODY_END.search(content, start)
        head = unescaped(content[start : end.start() if end else start + _PIECE])
        after = end.start() if end else len(content)
        packed = None
        if end and end[0].startswith(b"stream"):
            after = _stream_end(content, head, end.end())
            packed = whole[end.end() : after]
        yield PdfObject(number, head, packed)
        match = _OBJECT.search(content, after)


def unpack_objects(stream: PdfObject, unpacked: bytes) -> Iterator[PdfObject]:
    """Yield the objects of an object stream; none of them is a stream."""
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
    """Decode escapes in names: `/J#61vaScript` is `/JavaScript`."""
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), head) if b"#" in head else head


def inflate(stream: PdfObject) -> Iterator[bytes]:
    """Yield the unpacked data of a stream in pieces; raises `zlib.error` at damage."""
    pieces: Iterable[bytes] = [] if stream.packed is None else [bytes(stream.packed)]
    for name in stream.filters:
        pieces = _inflated(pieces) if name in _FLATE else _from_ascii(pieces, name)
    return iter(pieces)


def _inflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack without verifying the checksum, which many writers get wrong and viewers ignore."""
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


# The contents of a PDF: every stream is unpacked once to count its bytes, and few are kept.

_KEPT_BYTES = 16 * MEBIBYTE  # of a form or an object stream, to search them
_BYTES_PER_PIXEL = 4  # CMYK with 8 bits per channel
_MAX_DEFLATE_RATIO = 1032  # a property of the deflate format
_PICTURE = re.compile(rb"/Subtype\s*/Image\b")
_FORM = re.compile(rb"/Subtype\s*/Form\b")
_OBJECTS = re.compile(rb"/Type\s*/ObjStm\b")
_SCRIPT = re.compile(rb"/(?:JavaScript|JS)\b")
_ATTACHMENT = re.compile(rb"/(?:EmbeddedFiles?|FileAttachment)\b")


@dataclass(slots=True)
class PdfContents:
    """The contents of a PDF, by object number."""

    heads: dict[int, bytes] = field(default_factory=dict)
    streams: set[int] = field(default_factory=set)
    damaged: set[int] = field(default_factory=set)
    forms: dict[int, bytes] = field(default_factory=dict)
    has_scripts: bool = False
    has_attachments: bool = False

    def add(self, item: PdfObject) -> None:
        """Add an object; it replaces an earlier one with the same number."""
        self.heads[item.number] = item.head
        self.has_scripts = self.has_scripts or _SCRIPT.search(item.head) is not None
        self.has_attachments = self.has_attachments or _ATTACHMENT.search(item.head) is not None
        self.damaged.discard(item.number)
        if item.packed is not None:
            self.streams.add(item.number)


def read_contents(content: bytes, options: ParsingOptions) -> PdfContents:
    """Read the objects of an unencrypted PDF; raise when its streams unpack to too much."""
    contents, total = PdfContents(), 0
    for item in read_objects(content):
        contents.add(item)
        if item.is_inflatable:
            total += _unpack_stream(item, contents, options)
            check_unpacked_size("The PDF", len(content), total, options)
    return contents


def _unpack_stream(stream: PdfObject, contents: PdfContents, options: ParsingOptions) -> int:
    """Return the unpacked size of a stream, 0 for an image within the pixel limit."""
    is_picture, is_form = _PICTURE.search(stream.head), _FORM.search(stream.head)
    is_objects = _OBJECTS.search(stream.head)
    packed = len(stream.packed or b"")
    most_pixels = options.max_image_megapixels * MEGAPIXEL * _BYTES_PER_PIXEL
    limit = most_pixels if is_picture else max_unpacked_bytes(packed, options)
    if is_picture and len(stream.filters) == 1 and packed * _MAX_DEFLATE_RATIO <= limit:
        return 0
    size, unpacked = 0, bytearray()
    try:
        for piece in inflate(stream):
            size += len(piece)
            if size > limit:
                if is_picture:
                    raise DecompressionBomb(
                        f"An image in the PDF has more than {options.max_image_megapixels} million pixels. "
                        "Scale it down or raise parsing.max_image_megapixels."
                    )
                check_unpacked_size("A stream of the PDF", packed, size, options)
            if (is_form or is_objects) and size <= _KEPT_BYTES:
                unpacked += piece
    except zlib.error:
        contents.damaged.add(stream.number)
    if is_form:
        contents.forms[stream.number] = bytes(unpacked)
    for item in unpack_objects(stream, bytes(unpacked)) if is_objects else ():
        contents.add(item)
    return 0 if is_picture else size


# References between objects: pages with damaged content, and forms that draw each other endlessly.

MAX_DRAWINGS = 100_000  # of forms that one form draws, directly or not
MAX_FORM_DEPTH = 50  # deeper forms count as endless
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
    """Return the pages (from 1) without any content that can be unpacked, and the number of all pages."""
    pages = _page_numbers(contents)
    whole = contents.streams - contents.damaged
    damaged = []
    for page, number in enumerate(pages, 1):
        parts = _referred(_CONTENTS, contents.heads.get(number, b""), contents.heads)
        if parts and whole.isdisjoint(parts):
            damaged.append(page)
    return damaged, len(pages)


def _page_numbers(contents: PdfContents) -> list[int]:
    """Return the object numbers of the pages in order; loops in the page tree are harmless."""
    roots = [head for head in contents.heads.values() if _ROOT.search(head)]
    top = _PAGES.search(roots[-1]) if roots else None
    waiting, visited, pages = [int(top[1])] if top else [], set[int](), list[int]()
    while waiting:
        number = waiting.pop()
        if number in visited:
            continue
        visited.add(number)
        head = contents.heads.get(number, b"")
        if _KIDS.search(head):
            waiting += reversed(_referred(_KIDS, head, contents.heads))
        elif number in contents.heads:
            pages.append(number)
    return pages


def _referred(key: re.Pattern[bytes], head: bytes, heads: Mapping[int, bytes]) -> list[int]:
    """Return the objects that an entry refers to: one, an array, or an object that is an array."""
    match = key.search(head)
    if match is None:
        return []
    array = match[1]
    if array is None:
        inner = heads.get(int(match[2]), b"").strip()
        array = inner if inner.startswith(b"[") else None
    return [int(match[2])] if array is None else [int(number) for number in _ALL.findall(array)]


def check_drawings(contents: PdfContents) -> None:
    """Refuse forms that draw each other endlessly or far too often."""
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
            f"The PDF repeats its forms endlessly or too often (limit {MAX_DRAWINGS} drawings per form). "
            "Print it to a new PDF."
        )


def _drawn_by(form: int, contents: PdfContents) -> Counter[int]:
    """Count the objects that a form draws, by the names in its resources."""
    names = Counter(_DRAWS.findall(contents.forms[form]))
    if not names:
        return Counter()
    known = {name: int(number) for name, number in _ENTRY.findall(_resources(form, contents.heads))}
    return Counter({known[name]: times for name, times in names.items() if name in known})


def _resources(form: int, heads: Mapping[int, bytes]) -> bytes:
    """Return the form's dictionary and the resources that it refers to, directly or in up to three steps."""
    text = heads.get(form, b"")
    for _ in range(3):
        indirect = [int(match[1]) for match in re.finditer(rb"/(?:Resources|XObject)\s+" + _REFERENCE, text)]
        text += b"".join(heads.get(number, b"") for number in indirect if heads.get(number, b"") not in text)
    return text
