"""Compound files (OLE), as written by Outlook and old Office programs."""

import struct
from collections.abc import Mapping

_SECTOR, _SMALL = 512, 64
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_NONE = 0xFFFFFFFF
_ROOT, _STREAM = 5, 2


def compound(streams: Mapping[str, bytes], repeats: int = 1) -> bytes:
    """A file of these small streams; with `repeats`, the directory repeats each name that many times."""
    held, chain, places = b"", list[int](), dict[str, tuple[int, int]]()
    for name, content in streams.items():
        places[name] = (len(chain), len(content))
        count = max(1, -(-len(content) // _SMALL))
        chain += [*range(len(chain) + 1, len(chain) + count), _END]
        held += content.ljust(count * _SMALL, b"\x00")
    small_fat = _padded(struct.pack(f"<{len(chain)}I", *chain), b"\xff")
    held = _padded(held)
    directory = _padded(_directory(places, len(held), repeats))
    parts = (directory, small_fat, held)
    starts, fat = list[int](), [_FAT]
    for part in parts:
        starts.append(len(fat))
        fat += [*range(len(fat) + 1, len(fat) + len(part) // _SECTOR), _END]
    assert len(fat) <= _SECTOR // 4, "one sector of FAT is all there is"
    directory = directory.replace(b"HELD", struct.pack("<I", starts[2]))
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(_SECTOR, b"\xff")
    return _header(starts, len(small_fat) // _SECTOR) + table + directory + small_fat + held


def _padded(content: bytes, filler: bytes = b"\x00") -> bytes:
    return content.ljust(-(-len(content) // _SECTOR) * _SECTOR, filler)


def _directory(places: Mapping[str, tuple[int, int]], held: int, repeats: int) -> bytes:
    named = [(name, *place) for name, place in places.items()]
    named += [(f"x{at}-{name}"[:31], *place) for at in range(1, repeats) for name, place in places.items()]
    root = bytearray(_entry("Root Entry", _ROOT, 0, held, child=1))
    root[116:120] = b"HELD"  # filled in at the end
    entries = bytes(root)
    for at, (name, start, size) in enumerate(named, start=1):
        entries += _entry(name, _STREAM, start, size, right=at + 1 if at < len(named) else _NONE)
    return entries


def _entry(name: str, kind: int, start: int, size: int, right: int = _NONE, child: int = _NONE) -> bytes:
    spelt = name.encode("utf-16-le") + b"\x00\x00"
    return (
        spelt.ljust(64, b"\x00")
        + struct.pack("<HBBIII", len(spelt), kind, 1, _NONE, right, child)
        + bytes(36)
        + struct.pack("<IQ", start, size)
    )


def _header(starts: list[int], small_fat_sectors: int) -> bytes:
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 62, 3, 0xFFFE, 9, 6)
    header += bytes(6) + struct.pack(
        "<IIIIIIIII", 0, 1, starts[0], 0, 4096, starts[1], small_fat_sectors, _END, 0
    )
    return header + struct.pack("<I", 0) + b"\xff\xff\xff\xff" * 108


def outlook(subject: str, body: str, repeats: int = 1) -> bytes:
    """An e-mail in Outlook's format."""
    texts = {0x001A: "IPM.Note", 0x0037: subject, 0x1000: body}
    properties = bytes(32) + b"".join(
        struct.pack("<IIQ", number << 16 | 0x001F, 6, len(text) * 2 + 2) for number, text in texts.items()
    )
    streams = {"__properties_version1.0": properties}
    streams |= {f"__substg1.0_{number:04X}001F": text.encode("utf-16-le") for number, text in texts.items()}
    return compound(streams, repeats)


def claiming(size: int) -> bytes:
    """An e-mail whose body is declared to be that long."""
    content = bytearray(outlook("Bees", "and trees"))
    name = "__substg1.0_1000001F".encode("utf-16-le")
    at = content.index(name) + 120
    content[at : at + 8] = struct.pack("<Q", size)
    return bytes(content)
