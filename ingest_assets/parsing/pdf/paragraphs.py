"""Where a run of lines breaks into paragraphs and list items."""

from collections.abc import Sequence

from ingest_assets.parsing.pdf.direction import is_right_to_left
from ingest_assets.parsing.pdf.lines import Line
from ingest_assets.parsing.pdf.markers import bullet_of, enumeration_of

INDENT = 0.6  # of the text's height
TO_SPARE = 1.0  # of the text's height, beyond the next word, for a line to have ended early by intention


def paragraphs_of(run: Sequence[Line]) -> list[list[Line]]:
    """The run's lines in order, cut where a new paragraph or item begins."""
    if len(run) < 2:
        return [list(run)]
    measured = _Run(run)
    found: list[list[Line]] = [[run[0]]]
    for at in range(1, len(run)):
        if measured.begins_item(at) or measured.begins_paragraph(at):
            found.append([])
        found[-1].append(run[at])
    return found


def starts_item(text: str) -> bool:
    """Whether a line begins with a bullet or a counter."""
    return bool(bullet_of(text) or enumeration_of(text))


class _Run:
    """A run of lines with their starts and ends, measured in the direction of reading."""

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
        self._is_hanging, self._is_centred = self._hangs(), self._stands_in_the_middle()

    def begins_item(self, at: int) -> bool:
        """A bullet always does; a counter may be a number in a sentence, so something must speak for it."""
        text, size = self._lines[at].text, self._lines[at].size
        if bullet_of(text):
            return True
        if not enumeration_of(text):
            return False
        is_shifted = abs(self._starts[at] - self._starts[at - 1]) > INDENT * size
        count, place = _count(text), round(self._starts[at] / max(size, 1))
        is_counted = any((count + step, place) in self._counters for step in (-1, 1))
        return is_shifted or is_counted or self._ended_early(at)

    def begins_paragraph(self, at: int) -> bool:
        """By its indentation, or because the line before ended where it need not have."""
        if self._is_centred:
            return False
        start, before, step = self._starts[at], self._starts[at - 1], INDENT * self._lines[at].size
        if self._is_hanging:
            return start <= self._margin + step
        if start > before + step:
            is_last = at + 1 == len(self._starts)
            is_alone = is_last or self._starts[at + 1] < start - step
            return is_alone and not starts_item(self._lines[at - 1].text)
        return self._ended_early(at)

    def _ended_early(self, at: int) -> bool:
        """The line before had room for the first word of this one."""
        spare = self._end - self._ends[at - 1]
        return spare > self._lines[at].first_width + TO_SPARE * self._lines[at].size

    def _stands_in_the_middle(self) -> bool:
        middles = [start + end for start, end in zip(self._starts, self._ends, strict=True)]
        size = self._lines[0].size
        return max(middles) - min(middles) < size and max(self._starts) - self._margin > 2 * size

    def _hangs(self) -> bool:
        """Only first lines reach out to the margin, as in a list of references."""
        inner = [
            start > self._margin + INDENT * line.size
            for start, line in zip(self._starts, self._lines, strict=True)
        ]
        return not inner[0] and (sum(inner) > len(inner) / 2 or (len(inner) == 2 and inner[1]))


def _count(text: str) -> int:
    """The value of a line's counter; letters count too. Lines without one have none near any other."""
    counter = enumeration_of(text).strip("()[].")
    if counter.isdecimal():
        return int(counter)
    return ord(counter) if len(counter) == 1 else -1000
