"""Columns that stand so close that the gaps between them are no wider than those between words.

They show all the same: line after line, a word begins at the same place, or figures stand beside figures, and
no word reaches over that place. Words of running text fall together like that in a line or two, not in many.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ingest_assets.parsing.pdf.lines import Word

SAME_START = 1.0  # points between the starts of words below each other
MIN_LINES = 4
MIN_SHARE = 0.6  # of the lines that reach to both sides of the place
MIN_GAP = 0.12  # of the text's height
MAX_CROSSING = 0.15  # share of the lines with a word over the place (headings over several columns)

_FIGURE = re.compile(r"[(<>~±+\-–−$€£¥*]*\d[\d.,:/%]*[)%*†‡]*|[-–—]|n/?a", re.IGNORECASE)

Rows = Sequence[Sequence[Word]]


@dataclass(frozen=True, slots=True)
class River:
    """Where two columns meet: from the end of the left one to the start of the right one."""

    left: float
    right: float
    is_aligned: bool = True  # words begin at its right bank

    def parts(self, before: Word, after: Word) -> bool:
        """Whether it runs between two words that follow each other on a line.

        A heading may be wider than its column, so it takes a word at the right bank, or two figures.
        """
        if before.box.right > self.right or after.box.left < self.right - SAME_START:
            return False
        is_at_bank = after.box.left <= self.right + SAME_START and self.is_aligned
        return is_at_bank or (is_figure(before.text.split()[-1]) and is_figure(after.text))


def is_figure(text: str) -> bool:
    """Whether a word is a number, or stands for one that is missing."""
    return bool(_FIGURE.fullmatch(text.strip()))


def rivers(lines: Rows, size: float) -> list[River]:
    """The places, from left to right. The words of a line come from left to right too."""
    starts = sorted({word.box.left for line in lines for word in line[1:]})
    lefts = [[word.box.left for word in line] for line in lines]
    found: list[River] = []
    last = float("-inf")
    for start in starts:
        if start > last + SAME_START / 2 and (not found or start > found[-1].right + SAME_START):
            last = start
            river = _river(lines, lefts, start, size)
            found += [river] if river else []
    return found


def _river(lines: Rows, lefts: Sequence[Sequence[float]], start: float, size: float) -> River | None:
    """The river whose right bank is here, if it is one."""
    pairs, crossing, both = [], 0, 0
    for line, own in zip(lines, lefts, strict=True):
        at = bisect_left(own, start - SAME_START)
        if at and line[at - 1].box.right > start:
            crossing += 1
        elif 0 < at < len(line):
            both += 1
            pairs.append((line[at - 1], line[at]))
    if both < MIN_LINES or crossing > MAX_CROSSING * len(lines):
        return None
    bank = max(one.box.right for one, _ in pairs)
    if start - bank < MIN_GAP * size:
        return None
    aligned = 0 if _is_a_counter(pairs) else sum(abs(o.box.left - start) <= SAME_START for _, o in pairs)
    figures = sum(is_figure(one.text) and is_figure(other.text) for one, other in pairs)
    if max(aligned, figures) < max(MIN_LINES, MIN_SHARE * both):
        return None
    return River(bank, start, is_aligned=aligned >= max(MIN_LINES, MIN_SHARE * both))


def _is_a_counter(pairs: Sequence[tuple[Word, Word]]) -> bool:
    """What stands before is equally wide and at the same place in each line, as `1.` is or `Tier`."""
    lefts, rights = [one.box.left for one, _ in pairs], [one.box.right for one, _ in pairs]
    usual = median(rights)
    odd = sum(abs(right - usual) > SAME_START for right in rights)
    return max(lefts) - min(lefts) <= 2 * SAME_START or odd <= MAX_CROSSING * len(rights)
