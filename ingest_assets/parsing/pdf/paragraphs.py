"""Splits a run of lines into paragraphs and list items."""

from collections.abc import Sequence

from ingest_assets.parsing.pdf.direction import is_right_to_left
from ingest_assets.parsing.pdf.lines import Line
from ingest_assets.parsing.pdf.markers import bullet_of, enumeration_of

INDENT = 0.6  # of the text's height
TO_SPARE = 1.0  # of the text's height: free space beyond the next word's width at the end of a paragraph


def paragraphs_of(run: Sequence[Line]) -> list[list[Line]]:
    """Return the run's lines in order, split where a new paragraph or item begins."""
    if len(run) < 2:
        return [list(run)]
    layout = _RunLayout(run)
    paragraphs: list[list[Line]] = [[run[0]]]
    for i in range(1, len(run)):
        if layout.begins_item(i) or layout.begins_paragraph(i):
            paragraphs.append([])
        paragraphs[-1].append(run[i])
    return paragraphs


def starts_item(text: str) -> bool:
    """True if a line begins with a bullet or a counter."""
    return bool(bullet_of(text) or enumeration_of(text))


class _RunLayout:
    """The starts and ends of a run's lines, measured in reading direction."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        flip = is_right_to_left("".join(line.text for line in lines))
        self._starts = [-line.box.right if flip else line.box.left for line in lines]
        self._ends = [-line.box.left if flip else line.box.right for line in lines]
        self._margin, self._end = min(self._starts), max(self._ends)
        self._counters = {
            (_count(line.text), round(start / max(line.size, 1)))
            for line, start in zip(lines, self._starts, strict=True)
        }
        self._is_hanging, self._is_centred = self._has_hanging_indent(), self._has_centred_lines()

    def begins_item(self, i: int) -> bool:
        """True for a bullet; a counter may be a number in a sentence and needs a second sign."""
        text, size = self._lines[i].text, self._lines[i].size
        if bullet_of(text):
            return True
        if not enumeration_of(text):
            return False
        is_shifted = abs(self._starts[i] - self._starts[i - 1]) > INDENT * size
        count, indent = _count(text), round(self._starts[i] / max(size, 1))
        is_counted = any((count + step, indent) in self._counters for step in (-1, 1))
        return is_shifted or is_counted or self._ended_early(i)

    def begins_paragraph(self, i: int) -> bool:
        """True if the line is indented or the line before ended early."""
        if self._is_centred:
            return False
        start, previous, step = self._starts[i], self._starts[i - 1], INDENT * self._lines[i].size
        if self._is_hanging:
            return start <= self._margin + step
        if start > previous + step:
            is_last = i + 1 == len(self._starts)
            is_alone = is_last or self._starts[i + 1] < start - step
            return is_alone and not starts_item(self._lines[i - 1].text)
        return self._ended_early(i)

    def _ended_early(self, i: int) -> bool:
        """True if the line before had room for the first word of this one."""
        spare = self._end - self._ends[i - 1]
        return spare > self._lines[i].first_width + TO_SPARE * self._lines[i].size

    def _has_centred_lines(self) -> bool:
        middles = [start + end for start, end in zip(self._starts, self._ends, strict=True)]
        size = self._lines[0].size
        return max(middles) - min(middles) < size and max(self._starts) - self._margin > 2 * size

    def _has_hanging_indent(self) -> bool:
        """True if only first lines start at the margin, as in a list of references."""
        inner = [
            start > self._margin + INDENT * line.size
            for start, line in zip(self._starts, self._lines, strict=True)
        ]
        return not inner[0] and (sum(inner) > len(inner) / 2 or (len(inner) == 2 and inner[1]))


def _count(text: str) -> int:
    """Return the value of a line's counter, also of a letter; without one, a value near no counter."""
    counter = enumeration_of(text).strip("()[].")
    if counter.isdecimal():
        return int(counter)
    return ord(counter) if len(counter) == 1 else -1000
