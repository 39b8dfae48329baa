"""A PDF's objects as they lie in the file, read without trust: no cross-reference table, no recursion.

Enough to see what a file holds before a parser does; not enough to read it. What cannot be made out is left
out: the parsers behind this have time and memory limits of their own.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_OBJECT = re.compile(rb"(?<!\d)(\d{1,10})\s+\d{1,5}\s+obj\b")
_BODY_END = re.compile(rb"\bendobj\b|\bstream\r?\n|(?<!\d)\d{1,10}\s+\d{1,5}\s+obj\b")
_LENGTH = re.compile(rb"/Length\s+(\d{1,12})(?!\s+\d+\s+R)")
_FIRST = re.compile(rb"/First\s+(\d{1,9})")
_FILTER = re.compile(rb"/Filter\s*(\[[^\]]*\]|/[A-Za-z0-9]+)")
_NAME = re.compile(rb"/([A-Za-z0-9]+)")
_ESCAPE = re.compile(rb"#([0-9A-Fa-f]{2})")
_FLATE = (b"FlateDecode", b"Fl")
_ASCII = (b"ASCII85Decode", b"A85", b"ASCIIHexDecode", b"AHx")
_PIECE = 1024 * 1024
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
