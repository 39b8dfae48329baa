"""Compressed bytes that expand to almost any size, created without compressing them all."""

import zlib

BLOCK = 16 * 1024 * 1024
_ZLIB_HEADER = b"\x78\xda"
_LAST_BLOCK = b"\x03\x00"


def deflated(mebibytes: int, filler: bytes = b" ") -> bytes:
    """A raw deflate stream of `filler`, about a thousandth of the unpacked size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(filler * (BLOCK // len(filler))) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * (mebibytes * 1024 * 1024 // BLOCK) + _LAST_BLOCK


def zipped(mebibytes: int, filler: bytes = b" ") -> bytes:
    """The same as a zlib stream; its checksum at the end is wrong."""
    return _ZLIB_HEADER + deflated(mebibytes, filler) + bytes(4)
