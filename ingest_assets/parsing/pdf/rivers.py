"""Rivers: gaps between close columns that are no wider than gaps between words.

In several lines, words begin at the same x position or numbers are beside numbers, and no word crosses that
position. In running text, this happens in one or two lines, not in many.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ingest_assets.parsing.pdf.lines import Word

SAME_START = 1.0  # points between the starts of aligned words
MIN_LINES = 4
MIN_SHARE = 0.6  # of the lines with words on both sides
MIN_GAP = 0.12  # of the text's height
MAX_CROSSING = 0.15  # share of the lines with a word across it (headings over several columns)

_NUMBER = re.compile(r"[(<>~±+\-–−$€£¥*]*\d[\d.,:/%]*[)%*†‡]*|[-–—]|n/?a", re.IGNORECASE)

Rows = Sequence[Sequence[Word]]


@dataclass(frozen=True, slots=True)
class River:
    """A gap between two columns, from the end of the left one to the start of the right one."""

    left: float
    right: float
    is_aligned: bool = True  # words begin at its right edge

    def separates(self, before: Word, after: Word) -> bool:
        """True if it runs between two consecutive words of a line.

        A heading may be wider than its column, so this requires a word at the right edge, or two numbers.
        """
        if before.box.right > self.right or after.box.left < self.right - SAME_START:
            return False
        is_at_edge = after.box.left <= self.right + SAME_START and self.is_aligned
        return is_at_edge or (is_number(before.text.split()[-1]) and is_number(after.text))


def is_number(text: str) -> bool:
    """True if a word is a number or a placeholder for a missing one."""
    return bool(_NUMBER.fullmatch(text.strip()))


def find_rivers(lines: Rows, size: float) -> list[River]:
    """Return the rivers from left to right; each line's words must be in that order too."""
    starts = sorted({word.box.left for line in lines for word in line[1:]})
    lefts = [[word.box.left for word in line] for line in lines]
    rivers: list[River] = []
    previous = float("-inf")
    for start in starts:
        if start > previous + SAME_START / 2 and (not rivers or start > rivers[-1].right + SAME_START):
            previous = start
            river = _river(lines, lefts, start, size)
            rivers += [river] if river else []
    return rivers


def _river(lines: Rows, lefts: Sequence[Sequence[float]], start: float, size: float) -> River | None:
    """Return the river whose right edge is at `start`, or None."""
    pairs, crossing, both = [], 0, 0
    for line, line_lefts in zip(lines, lefts, strict=True):
        i = bisect_left(line_lefts, start - SAME_START)
        if i and line[i - 1].box.right > start:
            crossing += 1
        elif 0 < i < len(line):
            both += 1
            pairs.append((line[i - 1], line[i]))
    if both < MIN_LINES or crossing > MAX_CROSSING * len(lines):
        return None
    left_edge = max(one.box.right for one, _ in pairs)
    if start - left_edge < MIN_GAP * size:
        return None
    aligned = 0 if _is_uniform(pairs) else sum(abs(o.box.left - start) <= SAME_START for _, o in pairs)
    numbers = sum(is_number(one.text) and is_number(other.text) for one, other in pairs)
    if max(aligned, numbers) < max(MIN_LINES, MIN_SHARE * both):
        return None
    return River(left_edge, start, is_aligned=aligned >= max(MIN_LINES, MIN_SHARE * both))


def _is_uniform(pairs: Sequence[tuple[Word, Word]]) -> bool:
    """True if the texts on the left have equal width and position, like `1.` or `Tier`."""
    lefts, rights = [one.box.left for one, _ in pairs], [one.box.right for one, _ in pairs]
    usual = median(rights)
    odd = sum(abs(right - usual) > SAME_START for right in rights)
    return max(lefts) - min(lefts) <= 2 * SAME_START or odd <= MAX_CROSSING * len(rights)
