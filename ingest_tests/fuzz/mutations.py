"""Mutations of files: truncated, overwritten, repeated or swapped parts, and too large numbers."""

import random
import re
from collections.abc import Callable, Mapping, Sequence

from ingest_tests.fuzz.trees import mutated_tree
from ingest_tests.parsing.hostile.archives import archive, members_of

Change = Callable[[bytes, random.Random, Sequence[bytes]], bytes]
_NUMBERS = (b"0", b"-1", b"65536", b"2147483648", b"4294967295", b"99999999999999999999", b"1e309", b"NaN")
_TOKENS = (
    *(b"<", b">", b"&", b"\x00", b"\xff\xfe", b"<![CDATA[", b"-->", b"<!--", b"&#0;", b"&#x110000;", b"</"),
    *(b"[" * 300, b"(" * 300, b">" * 300, b"<div>" * 300, b"{" * 300, b"\\begin{x}" * 100, b"*" * 300),
    *(b"`" * 99, b"| " * 300, b"  - " * 99, b"endobj", b"endstream", b"stream\n", b" 0 R", b"/Kids[1 0 R]"),
    *(b"<<" * 200, b"\n" * 500, b"\r", b"\t" * 99, "\u202e\u200f\ufeff".encode(), b"\xc3", b"PK\x03\x04"),
    *(b"%PDF-1.7", b"--outer", b"]]>"),
)
_DIGITS = re.compile(rb"\d+")
_MAIN = re.compile(
    r"(document|slide1|sheet1|workbook|sharedStrings|presentation|content|c)\.x(ht)?ml|\.rels|opf"
)


def mutated(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Apply one to five mutations."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        content = chance.choice(_MUTATIONS)(content, chance, others)
    return content


def mutated_inside(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Mutate the members of an archive; the archive stays valid, else its checksums would fail first."""
    members = members_of(content)
    names = sorted(members)
    main = [name for name in names if _MAIN.search(name)] or names
    for _ in range(chance.choice((1, 1, 2, 4))):
        name = chance.choice(main if chance.random() < 0.6 else names)
        if chance.random() < 0.1:
            members.pop(name, None)
        elif name in members:
            members[name] = mutated_part(members[name], chance, others)
    return archive(members)


def mutated_part(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Mutate a file that may be XML: most mutations keep it well-formed."""
    tree = mutated_tree(content, chance) if chance.random() < 0.7 else None
    return mutated(content, chance, others) if tree is None else tree


def _truncate(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _flip(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    changed = bytearray(content)
    for _at in range(chance.choice((1, 4, 32)) if content else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _overwrite(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    start, end = _span(content, chance)
    filler = chance.choice((b"\x00", b"\xff", b" ", b"A")) * (end - start)
    return content[:start] + chance.choice((filler, chance.randbytes(end - start))) + content[end:]


def _remove(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + content[end:]


def _repeat(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + content[start:end] * chance.choice((2, 3, 40)) + content[end:]


def _insert(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice(_TOKENS) + content[at:]


def _renumber(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """Replace some numbers by extreme ones."""
    share = chance.choice((0.02, 0.1, 0.5))
    return _DIGITS.sub(
        lambda found: chance.choice(_NUMBERS) if chance.random() < share else found[0], content
    )


def _splice(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    other = chance.choice(others)
    return content[: chance.randrange(len(content) + 1)] + other[chance.randrange(len(other)) :]


def _shuffle(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    """Swap two spans."""
    first, second = sorted((_span(content, chance), _span(content, chance)))
    if first[1] > second[0]:
        return content
    middle = content[first[1] : second[0]]
    return (
        content[: first[0]] + content[slice(*second)] + middle + content[slice(*first)] + content[second[1] :]
    )


def _span(content: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(content) + 1)
    return start, min(len(content), start + chance.choice((1, 4, 20, 100, 1000)))


_MUTATIONS: tuple[Change, ...] = (
    *(_truncate, _flip, _flip, _overwrite, _remove, _repeat, _insert, _insert, _renumber, _splice, _shuffle),
)


# Files of each format per thousand: fewer of those that are slow to read.
SHARES: Mapping[str, int] = {
    "pdf": 130,
    "docx": 100,
    "pptx": 80,
    "xlsx": 80,
    "html": 110,
    "xhtml": 30,
    "md": 100,
    "txt": 20,
    "csv": 40,
    "adoc": 40,
    "vtt": 30,
    "tex": 50,
    "eml": 40,
    "nxml": 40,
    "epub": 40,
    "odt": 20,
    "ods": 15,
    "odp": 15,
    "msg": 20,
    "xml": 20,
    "mhtml": 15,
    "boxnote": 10,
    "json": 15,
    "png": 10,
    "jpg": 10,
    "tiff": 10,
    "gif": 5,
    "bmp": 5,
    "webp": 10,
}
