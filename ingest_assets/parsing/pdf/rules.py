"""Rules: the straight lines drawn on a page, joined from their pieces."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.lines import Word

SAME = 2.0  # points between pieces of one line, across it
GAP = 4.0  # points between pieces of one line, along it
MIN_LENGTH = 6.0
MANY = 400  # lines: more than a page has underlines
UNDER = 0.8  # overlap of a word and its underline, as a share of the shorter one


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line: its y (or x, if vertical) in `at`, and where it starts and ends."""

    at: float
    start: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.start

    def covers(self, start: float, end: float) -> float:
        """Return the share of an interval that the line covers."""
        shared = min(self.end, end) - max(self.start, start)
        return max(0.0, shared) / max(end - start, 1e-6)


def horizontal_rules(boxes: Iterable[Box]) -> list[Rule]:
    """Return horizontal lines from top to bottom."""
    return _joined([Rule(box.middle_y, box.left, box.right) for box in boxes if box.width > box.height])


def vertical_rules(boxes: Iterable[Box]) -> list[Rule]:
    """Return vertical lines from left to right."""
    return _joined([Rule(box.middle_x, box.top, box.bottom) for box in boxes if box.height > box.width])


def without_underlines(boxes: Sequence[Box], words: Sequence[Word]) -> list[Box]:
    """Return the lines except those that underline words, as in links: at the baseline and no longer."""
    if len(boxes) > MANY:
        return list(boxes)  # a drawing
    return [box for box in boxes if box.height > box.width or not any(_underlines(box, w) for w in words)]


def _underlines(line: Box, word: Word) -> bool:
    is_at_foot = word.box.middle_y < line.middle_y < word.box.bottom
    return is_at_foot and line.shared_width(word.box) > UNDER * min(line.width, word.box.width)


def _joined(pieces: Sequence[Rule]) -> list[Rule]:
    lines: list[list[Rule]] = []
    for piece in sorted(pieces, key=lambda piece: (piece.at, piece.start)):
        line = next((line for line in lines if abs(line[0].at - piece.at) <= SAME), None)
        if line is None:
            lines.append([piece])
        else:
            line.append(piece)
    rules = [rule for line in lines for rule in _unbroken(line)]
    return [rule for rule in rules if rule.length >= MIN_LENGTH]


def _unbroken(line: Sequence[Rule]) -> list[Rule]:
    """Join the pieces of one line, except over gaps."""
    rules: list[Rule] = []
    for piece in sorted(line, key=lambda piece: piece.start):
        if rules and piece.start <= rules[-1].end + GAP:
            rules[-1] = Rule(rules[-1].at, rules[-1].start, max(rules[-1].end, piece.end))
        else:
            rules.append(piece)
    return rules
