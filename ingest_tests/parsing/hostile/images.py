"""Images that are larger than their files."""

import struct
import zlib
from io import BytesIO


def png(width: int, height: int) -> bytes:
    """A black image with one bit per pixel; if it is too large to create, with the data of a small one."""
    rows = min(height, 64_000_000 // (width // 8 + 2))
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    packed = zlib.compress(bytes((width + 7) // 8 + 1) * rows, 9)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    )


def tiff(width: int, height: int) -> bytes:
    """A TIFF header that declares these dimensions, and eight bytes of pixels."""
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, height)]
    tags.append((279, 8))
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\x00" + struct.pack("<I", 16) + bytes(8) + struct.pack("<H", len(tags)) + entries + bytes(4)


def bmp(width: int, height: int) -> bytes:
    """A BMP header that declares these dimensions."""
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + header


def frames(count: int, kind: str = "GIF") -> bytes:
    """An animation of small frames."""
    from PIL import Image

    made = BytesIO()
    first, *others = (Image.new("L", (8, 8), at % 255) for at in range(count))
    first.save(made, kind, save_all=True, append_images=others)
    return made.getvalue()
