"""Bodies in plain bytes, a small piece at a time, however much a compressed byte may stand for."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

from ingest_assets.intake.fetch.errors import BodyCutOff, BombRefused, EncodingRefused

ACCEPTED = "gzip, deflate"
PIECE_BYTES = 64 * 1024
MAX_RATIO = 250
RATIO_COUNTS_FROM_BYTES = 8 * 1024 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = 16 + zlib.MAX_WBITS


class Inflater(Protocol):
    """What zlib's decompression objects offer."""

    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def is_plain(encoding: str) -> bool:
    """True when the bytes on the wire are the document's own."""
    return encoding.strip().lower() in ("", "identity")


def decoded(pieces: Iterable[bytes], encoding: str, url: str) -> Iterator[bytes]:
    """The document's bytes; refuses what was not asked for and what expands out of all proportion."""
    name = encoding.strip().lower()
    if is_plain(name):
        yield from pieces
    elif name in ("gzip", "x-gzip", "deflate"):
        yield from _inflated(pieces, name, url)
    else:
        raise EncodingRefused(
            f"{url} came in content encoding {name[:40]!r}, and only gzip and deflate were asked for; "
            "tell the site's owner.",
            detail={"url": url},
        )


def _inflated(pieces: Iterable[bytes], name: str, url: str) -> Iterator[bytes]:
    inflater: Inflater | None = None
    wire_bytes = plain_bytes = 0
    for piece in pieces:
        wire_bytes += len(piece)
        waiting, may_hold_more = piece, False
        while waiting or may_hold_more:
            if inflater is None or (inflater.eof and _starts_member(waiting, name)):
                inflater = _inflater(name, waiting)
            elif inflater.eof:
                break  # whatever follows the last member is padding
            plain = _step(inflater, waiting, url)
            plain_bytes += len(plain)
            _require_proportion(plain_bytes, wire_bytes, url)
            yield plain
            waiting = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            may_hold_more = len(plain) == PIECE_BYTES and not inflater.eof
    if inflater is not None and not inflater.eof:
        raise BodyCutOff(f"{url} ended within its {name} data; it is tried again.", detail={"url": url})


def _starts_member(waiting: bytes, name: str) -> bool:
    """A gzip body may be several, one after the other; the boundary may fall between any two pieces."""
    return name != "deflate" and waiting != b"" and _GZIP_MAGIC.startswith(waiting[:2])


def _inflater(name: str, first: bytes) -> Inflater:
    if name != "deflate":
        return zlib.decompressobj(_GZIP_WBITS)
    # "deflate" means zlib's format, and many servers send it without zlib's header.
    has_header = first[0] & 0x0F == 8 and (len(first) < 2 or int.from_bytes(first[:2], "big") % 31 == 0)
    return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)


def _step(inflater: Inflater, waiting: bytes, url: str) -> bytes:
    try:
        return inflater.decompress(waiting, PIECE_BYTES)
    except zlib.error:
        raise EncodingRefused(
            f"{url} is not the compressed data it claims to be; tell the site's owner.", detail={"url": url}
        ) from None


def _require_proportion(plain_bytes: int, wire_bytes: int, url: str) -> None:
    if plain_bytes > RATIO_COUNTS_FROM_BYTES and plain_bytes > MAX_RATIO * wire_bytes:
        raise BombRefused(
            f"{url} expands more than {MAX_RATIO} times; documents do not, so it is refused.",
            detail={"url": url, "received_bytes": wire_bytes, "expanded_bytes": plain_bytes},
        )
