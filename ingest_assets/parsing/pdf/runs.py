"""Runs: lines that follow each other down a column at an even distance."""

from collections.abc import Sequence
from statistics import median

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import Region
from ingest_assets.parsing.pdf.lines import Line
from ingest_assets.parsing.pdf.rows import rows_of

MAX_SIZE_CHANGE = 1.12
MAX_MONO_CHANGE = 1.35
EXTRA_GAP = 0.35  # of the text's height: a gap larger than the usual one by this ends a run
USUAL_GAP = 0.4  # of the text's height, for a page with too few lines to measure it
WIDEST_USUAL_GAP = 2.0
MIN_SCORE = 0.3  # regions below it are ignored
ALL = 0.9  # share of a line's letters, for the line to have a style as a whole

_SEPARATE_LABELS = {"title", "figure_caption", "table_caption", "equation", "header", "footer"}


def runs_of(lines: Sequence[Line], regions: Sequence[Region], rules: Sequence[Box]) -> list[list[Line]]:
    """Return runs in the order of their first lines; each line is in exactly one run."""
    usual = _usual_gap(lines)
    page = _LineIndex(lines, regions, rules)
    runs: list[list[Line]] = []
    near: list[list[Line]] = []  # runs that can still go on
    for line in sorted(lines, key=lambda line: (line.box.top, line.box.left)):
        near = [
            run for run in near if line.box.top - run[-1].box.bottom <= (usual + EXTRA_GAP) * run[-1].size
        ]
        above = [run for run in near if _is_above(run[-1], line, usual)]
        if len(above) == 1 and _continues(above[0][-1], line, page):
            above[0].append(line)
        else:
            runs.append([line])
            near.append(runs[-1])
    return runs


def _usual_gap(lines: Sequence[Line]) -> float:
    """Return the median gap between a line and the one below it, in heights of the text."""
    gaps = []
    ordered = sorted(lines, key=lambda line: line.box.top)
    for at, line in enumerate(ordered):
        for below in ordered[at + 1 :]:
            if below.box.top > line.box.bottom + WIDEST_USUAL_GAP * line.size:
                break
            if below.box.middle_y > line.box.bottom and _overlaps(line, below) and _same_size(line, below):
                gaps.append((below.box.top - line.box.bottom) / line.size)
                break
    return median(gaps) if len(gaps) >= 3 else USUAL_GAP


def _is_above(upper: Line, line: Line, usual: float) -> bool:
    """True if the line is directly below `upper`, no further than usual."""
    gap = line.box.top - upper.box.bottom
    size = min(upper.size, line.size)
    return (
        _overlaps(upper, line) and line.box.middle_y > upper.box.bottom and gap <= (usual + EXTRA_GAP) * size
    )


def _overlaps(one: Line, other: Line) -> bool:
    return one.box.shared_width(other.box) > 0.5 * min(one.box.width, other.box.width)


def _same_size(one: Line, other: Line) -> bool:
    """Compare sizes; monospaced type may be smaller than the text around it."""
    has_code = max(one.style.mono, other.style.mono) > 0.4 and not _starts_elsewhere(one, other)
    limit = MAX_MONO_CHANGE if has_code else MAX_SIZE_CHANGE
    return max(one.size, other.size) <= limit * min(one.size, other.size)


class _LineIndex:
    """The labels and rows of a page's lines, computed once."""

    def __init__(self, lines: Sequence[Line], regions: Sequence[Region], rules: Sequence[Box]) -> None:
        likely = [region for region in regions if region.score >= MIN_SCORE]
        self.labels = {id(line): _region_label(line, likely) for line in lines}
        self.rules = [rule for rule in rules if rule.width > rule.height]
        self._rows = rows_of(lines)
        self._row_of = {id(line): at for at, row in enumerate(self._rows) for line in row}

    def beside(self, line: Line) -> list[Line]:
        """Return the other lines in the same row."""
        return [other for other in self._rows[self._row_of[id(line)]] if other is not line]


def _continues(upper: Line, line: Line, page: _LineIndex) -> bool:
    return (
        _same_size(upper, line)
        and not _changes_style(upper, line)
        and (_is_one_heading(upper, line) or page.labels[id(upper)] == page.labels[id(line)])
        and not any(_separates(rule, upper, line) for rule in page.rules)
        and not any(_overlaps(upper, other) for other in page.beside(line))  # one of several columns
    )


def _changes_style(upper: Line, line: Line) -> bool:
    """True if one of the lines is all bold, italic or monospaced and its style ends at the line break."""
    for name in ("bold", "italic", "mono") if _starts_elsewhere(upper, line) else ("bold", "italic"):
        whole = max(getattr(upper.style, name), getattr(line.style, name)) >= ALL
        if whole and (getattr(upper.last, name) >= ALL) != (getattr(line.first, name) >= ALL):
            return True
    return False


def _starts_elsewhere(upper: Line, line: Line) -> bool:
    """True if the lines are indented differently; if not, monospaced type is a name in a sentence."""
    return abs(upper.box.left - line.box.left) > 0.6 * line.size


def _is_one_heading(upper: Line, line: Line) -> bool:
    return upper.font == line.font and min(upper.style.bold, line.style.bold) >= ALL


def _region_label(line: Line, regions: Sequence[Region]) -> str:
    """Return the detector's label of the line if it is one that text of the body never has, else ''."""
    regions_around = [region for region in regions if line.box.share_in(region.box) > 0.6]
    best = max(regions_around, key=lambda region: region.score, default=None)
    return best.label if best is not None and best.label in _SEPARATE_LABELS else ""


def _separates(rule: Box, upper: Line, line: Line) -> bool:
    between = upper.box.middle_y < rule.middle_y < line.box.middle_y
    return between and rule.shared_width(line.box) > 0.7 * line.box.width
