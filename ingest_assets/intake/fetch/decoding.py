"""Bodies in plain bytes, a small piece at a time, however much a compressed byte may stand for.

httpx decodes bodies too, and would do harm here: it drops the gzip members after the first, takes a body that
was cut off as whole, and expands a piece in full before a limit can be applied.
"""

import zlib
from collections.abc import Iterable, Iterator

from ingest_assets.intake.fetch.errors import BodyCutOff, BombRefused, EncodingRefused

ACCEPTED = "gzip, deflate"
PIECE_BYTES = 64 * 1024
# Deflate reaches 1032, and only with bytes that repeat. A small body may: it cannot fill anything.
MAX_RATIO = 250
RATIO_COUNTS_FROM_BYTES = 8 * 1024 * 1024
_GZIP_MAGIC = b"\x1f\x8b"


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
    inflater = None
    wire_bytes = plain_bytes = 0
    for piece in pieces:
        wire_bytes += len(piece)
        waiting, may_hold_more = piece, False
        while waiting or may_hold_more:
            if inflater is None or (inflater.eof and _starts_member(waiting, name)):
                inflater = zlib.decompressobj(_window_bits(name, waiting))
            elif inflater.eof:
                break  # whatever follows the last member is padding
            try:
                plain = inflater.decompress(waiting, PIECE_BYTES)
            except zlib.error:
                why = f"{url} is not the compressed data it claims to be; tell the site's owner."
                raise EncodingRefused(why, detail={"url": url}) from None
            plain_bytes += len(plain)
            if plain_bytes > max(RATIO_COUNTS_FROM_BYTES, MAX_RATIO * wire_bytes):
                raise BombRefused(
                    f"{url} expands more than {MAX_RATIO} times; documents do not, so it is refused.",
                    detail={"url": url, "received_bytes": wire_bytes, "expanded_bytes": plain_bytes},
                )
            yield plain
            waiting = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            may_hold_more = len(plain) == PIECE_BYTES and not inflater.eof
    if inflater is not None and not inflater.eof:
        raise BodyCutOff(f"{url} ended within its {name} data; it is tried again.", detail={"url": url})


def _starts_member(waiting: bytes, name: str) -> bool:
    """A gzip body may be several, one after the other; the boundary may fall between any two pieces."""
    return name != "deflate" and waiting != b"" and _GZIP_MAGIC.startswith(waiting[:2])


def _window_bits(name: str, first: bytes) -> int:
    """By which zlib knows the format."""
    if name != "deflate":
        return 16 + zlib.MAX_WBITS
    # "deflate" means zlib's format, and many servers send it without zlib's header.
    has_header = first[0] & 0x0F == 8 and (len(first) < 2 or int.from_bytes(first[:2], "big") % 31 == 0)
    return zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS
