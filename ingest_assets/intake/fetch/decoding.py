"""Decompress bodies in small pieces, so that limits apply before memory fills.

httpx decodes bodies too, but it drops all gzip members after the first, accepts a truncated body, and expands
a piece in full before a limit can be applied.
"""

import zlib
from collections.abc import Iterable, Iterator

from ingest_assets.intake.fetch.errors import BodyCutOff, BombRefused, EncodingRefused

ACCEPTED = "gzip, deflate"
PIECE_BYTES = 64 * 1024
# Deflate reaches 1032, but only for repeated bytes. A small body can have any ratio: it fills no disk.
MAX_RATIO = 250
RATIO_COUNTS_FROM_BYTES = 8 * 1024 * 1024
_GZIP_MAGIC = b"\x1f\x8b"


def is_plain(encoding: str) -> bool:
    """True if the body is not compressed."""
    return encoding.strip().lower() in ("", "identity")


def decoded(pieces: Iterable[bytes], encoding: str, url: str) -> Iterator[bytes]:
    """Yield the document's bytes; raise for encodings not requested and for decompression bombs."""
    name = encoding.strip().lower()
    if is_plain(name):
        yield from pieces
    elif name in ("gzip", "x-gzip", "deflate"):
        yield from _inflated(pieces, name, url)
    else:
        raise EncodingRefused(
            f"{url} has content encoding {name[:40]!r}, but only gzip and deflate were requested; "
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
                break  # anything after the last member is padding
            try:
                plain = inflater.decompress(waiting, PIECE_BYTES)
            except zlib.error:
                why = f"{url} is not valid {name} data, although its header says so; tell the site's owner."
                raise EncodingRefused(why, detail={"url": url}) from None
            plain_bytes += len(plain)
            if plain_bytes > max(RATIO_COUNTS_FROM_BYTES, MAX_RATIO * wire_bytes):
                raise BombRefused(
                    f"{url} expands to more than {MAX_RATIO} times its size; do not queue it again.",
                    detail={"url": url, "received_bytes": wire_bytes, "expanded_bytes": plain_bytes},
                )
            yield plain
            waiting = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            may_hold_more = len(plain) == PIECE_BYTES and not inflater.eof
    if inflater is not None and not inflater.eof:
        raise BodyCutOff(f"{url}: the {name} data is cut off.", detail={"url": url})


def _starts_member(waiting: bytes, name: str) -> bool:
    """True at the start of another gzip member, which can follow at the end of any piece."""
    return name != "deflate" and waiting != b"" and _GZIP_MAGIC.startswith(waiting[:2])


def _window_bits(name: str, first: bytes) -> int:
    """Return zlib's code for the format."""
    if name != "deflate":
        return 16 + zlib.MAX_WBITS
    # "deflate" means zlib's format, and many servers send it without zlib's header.
    has_header = first[0] & 0x0F == 8 and (len(first) < 2 or int.from_bytes(first[:2], "big") % 31 == 0)
    return zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS
