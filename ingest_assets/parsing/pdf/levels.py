"""The level of each heading: by its number, else by headings that look like it, else by its size."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.parsing.pdf.markers import section_number_of

SAME_SIZE = 1.06
DEEPEST = 5

_NUMBER = re.compile(r"(?:[A-Z]|\d+|[IVXLC]+)(?:[.\-]\d+)*\.?$")


@dataclass(frozen=True, slots=True)
class Heading:
    """The properties that decide a heading's level."""

    text: str
    size: float
    bold: bool = False
    capitals: bool = False


def levels_of(headings: Sequence[Heading]) -> list[int]:
    """Return the headings' levels in order, from 1; the first heading is never deeper than the second.

    A title that is larger than all numbered headings and precedes them is above them.
    """
    if not headings:
        return []
    ranks = _ranks(headings)
    depths = _depths(headings, ranks)
    by_rank = _by_rank(depths, ranks)
    levels = [depth or by_rank[rank] for depth, rank in zip(depths, ranks, strict=True)]
    if len(levels) > 1:
        levels[0] = min(levels[:2])
    used = sorted(set(levels))
    return [min(used.index(level) + 1, DEEPEST) for level in levels]


def _depths(headings: Sequence[Heading], ranks: Sequence[int]) -> list[int]:
    """Return the depths that numbers indicate; 0 without a number.

    A new kind of number (`A` after `1`) is as deep as headings with the same look, else one deeper.
    """
    kinds: dict[str, int] = {}
    looks: dict[int, int] = {}
    depths = []
    for heading, rank in zip(headings, ranks, strict=True):
        words = section_number_of(heading.text).split()
        number = words[-1] if words else ""
        if not _NUMBER.match(number):
            depths.append(0)
            continue
        dots = len(re.findall(r"[.\-]\d", number))
        kind = _kind(number)
        if kind not in kinds:
            kinds[kind] = looks.get(rank, max(kinds.values(), default=0) + 1)
        looks.setdefault(rank, kinds[kind] + dots)
        depths.append(kinds[kind] + dots)
    return depths


def _kind(number: str) -> str:
    first = re.split(r"[.\-]", number)[0]
    if first.isdigit():
        return "digit"
    return "roman" if re.fullmatch(r"[IVX]+", first) else "letter"


def _ranks(headings: Sequence[Heading]) -> list[int]:
    """Rank looks: larger first, then bold, then capitals; nearly equal sizes are equal."""
    sizes: list[float] = []
    for size in sorted({heading.size for heading in headings}, reverse=True):
        if not sizes or sizes[-1] > SAME_SIZE * size:
            sizes.append(size)
    keys = [
        (next(i for i, size in enumerate(sizes) if size <= SAME_SIZE * h.size), not h.bold, not h.capitals)
        for h in headings
    ]
    order = sorted(set(keys))
    return [order.index(key) for key in keys]


def _by_rank(depths: Sequence[int], ranks: Sequence[int]) -> dict[int, float]:
    """Return a level for each look: that of its numbered headings, else one between its neighbours."""
    levels: dict[int, float] = {}
    for rank in sorted(set(ranks)):
        numbered = [depth for depth, one in zip(depths, ranks, strict=True) if one == rank and depth]
        if numbered:
            levels[rank] = Counter(numbered).most_common(1)[0][0]
    known = dict(levels)
    for rank in sorted(set(ranks) - set(levels)):
        above = [level for one, level in known.items() if one < rank]
        levels[rank] = (max(above) + 0.5 + rank / 100) if above else rank / 100
    return levels
