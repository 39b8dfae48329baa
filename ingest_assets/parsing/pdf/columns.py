"""The columns of a table, separated by drawn lines or by white strips."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.lines import Word
from ingest_assets.parsing.pdf.rivers import River
from ingest_assets.parsing.pdf.rules import Rule

MIN_STRIP = 0.35  # of the text's height: the minimum width of a white strip between columns
MAX_CROSSING = 0.2  # share of the rows that may cross a strip (headings over several columns)
MIN_DRAWN = 0.6  # share of a table's height that lines between columns must cover
MIN_FILLED = 0.15  # share of the rows with text on either side of a strip
MIN_SHARED = 0.1  # share of the rows with text in both of two adjacent columns
SNAP = 3.0  # points

Rows = Sequence[Sequence[Word]]


def column_splits(
    rows: Rows,
    words: Rows,
    box: Box,
    verticals: Sequence[Rule],
    size: float,
    rivers: Sequence[River] = (),
) -> list[float]:
    """Return the x positions between columns; one fewer than there are columns.

    `rows` contains the texts of each line, `words` their words, `rivers` the gaps no wider than spaces.
    """
    drawn = _drawn(box, verticals)
    strips = _white_strips(rows, words, size, rivers)
    white = [strip for strip in strips if not any(_is_in(x, strip) for x in drawn)]
    splits = sorted([*drawn, *((left + right) / 2 for left, right in white)])
    for x in sorted(set(splits) - set(drawn)):
        if not _separates(rows, x, splits):
            splits.remove(x)
    return splits


def _separates(rows: Rows, x: float, splits: Sequence[float]) -> bool:
    """True if enough rows have text on both sides of `x`, up to the next split."""
    left = max((other for other in splits if other < x), default=float("-inf"))
    right = min((other for other in splits if other > x), default=float("inf"))
    both = 0
    for row in rows:
        middles = [word.box.middle_x for word in row]
        both += any(left < middle < x for middle in middles) and any(x < middle < right for middle in middles)
    return both >= max(1.0, MIN_SHARED * len(rows))


def column_of(x: float, splits: Sequence[float]) -> int:
    """Return the index of the column at `x`."""
    return sum(x > split for split in splits)


def _drawn(box: Box, verticals: Sequence[Rule]) -> list[float]:
    """Return the positions of lines inside the table that together cover most of its height."""
    lengths: dict[float, float] = {}
    for rule in verticals:
        at = next((x for x in lengths if abs(x - rule.at) <= SNAP), rule.at)
        lengths[at] = lengths.get(at, 0.0) + rule.length
    inner = (x for x in lengths if box.left + 2 * SNAP < x < box.right - 2 * SNAP)
    return sorted(x for x in inner if lengths[x] >= MIN_DRAWN * box.height)


def _is_in(x: float, strip: tuple[float, float]) -> bool:
    return strip[0] - SNAP <= x <= strip[1] + SNAP


def _white_strips(rows: Rows, words: Rows, size: float, rivers: Sequence[River]) -> list[tuple[float, float]]:
    """Return strips that few rows cross, with text on both sides, and the rivers outside them."""
    edges = sorted({edge for row in words for word in row for edge in (word.box.left, word.box.right)})
    allowed = max(MAX_CROSSING * len(rows), 1.0 if len(rows) > 2 else 0.0)
    strips: list[list[tuple[float, float, int]]] = [[]]
    by_text, by_word = _crossings(rows, edges), _crossings(words, edges)
    for i, (left, right) in enumerate(pairwise(edges)):
        if by_text[i] <= allowed:
            strips[-1].append((left, right, by_word[i]))
        elif strips[-1]:
            strips.append([])
    clearest = [_clearest(strip) for strip in strips if strip]
    # A gap in a column of justified text is no split if a river is beside it.
    candidates = [
        part
        for strip, part in zip((strip for strip in strips if strip), clearest, strict=True)
        if not any(_contains(strip, river) and not _touch(part, river) for river in rivers)
    ]
    wide = [strip for strip in candidates if _is_wide(rows, strip, size) and _is_between_texts(rows, strip)]
    return [*wide, *((r.left, r.right) for r in rivers if not any(_touch(strip, r) for strip in wide))]


def _contains(strip: Sequence[tuple[float, float, int]], river: River) -> bool:
    return strip[0][0] <= river.right <= strip[-1][1] + 1


def _touch(strip: tuple[float, float], river: River) -> bool:
    return strip[0] <= river.right + 1 and river.left <= strip[1] + 1


def _crossings(rows: Rows, edges: Sequence[float]) -> list[int]:
    """Return the number of rows that cross each interval between two consecutive edges."""
    changes = [0] * (len(edges) + 1)
    for row in rows:
        reach = float("-inf")
        for word in sorted(row, key=lambda word: word.box.left):
            if word.box.right > reach:
                changes[bisect_left(edges, max(word.box.left, reach))] += 1
                changes[bisect_left(edges, word.box.right)] -= 1
                reach = word.box.right
    return list(accumulate(changes))[: max(0, len(edges) - 1)]


def _clearest(strip: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    """Return the widest part of a strip that the fewest rows cross."""
    fewest = min(count for _, _, count in strip)
    parts: list[tuple[float, float]] = []
    for left, right, count in strip:
        if count > fewest:
            continue
        if parts and parts[-1][1] == left:
            parts[-1] = (parts[-1][0], right)
        else:
            parts.append((left, right))
    return max(parts, key=lambda part: part[1] - part[0])


def _is_wide(rows: Rows, strip: tuple[float, float], size: float) -> bool:
    """True if the gap is wide enough in the rows that do not cross it."""
    middle = (strip[0] + strip[1]) / 2
    clear = [row for row in rows if not any(word.box.left < middle < word.box.right for word in row)]
    lefts = [word.box.right for row in clear for word in row if word.box.right <= middle]
    rights = [word.box.left for row in clear for word in row if word.box.left >= middle]
    return bool(lefts and rights) and min(rights) - max(lefts) >= MIN_STRIP * size


def _is_between_texts(rows: Rows, strip: tuple[float, float]) -> bool:
    middle = (strip[0] + strip[1]) / 2
    before = sum(any(word.box.right <= middle for word in row) for row in rows)
    after = sum(any(word.box.left >= middle for word in row) for row in rows)
    return min(before, after) >= max(1.0, MIN_FILLED * len(rows))
