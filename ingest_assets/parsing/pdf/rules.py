"""The straight lines that are drawn on a page, put together from the pieces that they come in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.lines import Word

SAME = 2.0  # points that pieces of one line may be apart across it
GAP = 4.0  # points that they may be apart along it
MIN_LENGTH = 6.0
MANY = 400  # lines: more than a page has links
UNDER = 0.8  # share of the shorter one that a word and the line under it have in common


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line: where it is (a height, or a distance from the left), and from where to where."""

    at: float
    start: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.start

    def covers(self, start: float, end: float) -> float:
        """The share of a stretch that the line goes along."""
        shared = min(self.end, end) - max(self.start, start)
        return max(0.0, shared) / max(end - start, 1e-6)


def horizontal(boxes: Iterable[Box]) -> list[Rule]:
    """Lines from left to right, from top to bottom."""
    return _joined([Rule(box.middle_y, box.left, box.right) for box in boxes if box.width > box.height])


def vertical(boxes: Iterable[Box]) -> list[Rule]:
    """Lines from top to bottom, from left to right."""
    return _joined([Rule(box.middle_x, box.top, box.bottom) for box in boxes if box.height > box.width])


def without_underlines(boxes: Sequence[Box], words: Sequence[Word]) -> list[Box]:
    """The lines but for those under words, as links have them: at the words' feet, and no longer."""
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
    found = [rule for line in lines for rule in _stretches(line)]
    return [rule for rule in found if rule.length >= MIN_LENGTH]


def _stretches(line: Sequence[Rule]) -> list[Rule]:
    """The unbroken parts of pieces on one line."""
    found: list[Rule] = []
    for piece in sorted(line, key=lambda piece: piece.start):
        if found and piece.start <= found[-1].end + GAP:
            found[-1] = Rule(found[-1].at, found[-1].start, max(found[-1].end, piece.end))
        else:
            found.append(piece)
    return found
