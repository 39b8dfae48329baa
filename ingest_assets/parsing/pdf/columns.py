"""The columns of a table: between lines drawn, else between white strips that go down through its rows."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.lines import Word
from ingest_assets.parsing.pdf.rivers import River
from ingest_assets.parsing.pdf.rules import Rule

MIN_STRIP = 0.35  # of the text's height: how wide a white strip between columns is at least
MAX_CROSSING = 0.2  # share of the rows that may reach over a strip (headings over several columns)
MIN_DRAWN = 0.6  # share of a table's height that lines between columns go along
MIN_FILLED = 0.15  # share of the rows with text on either side of a strip
MIN_SHARED = 0.1  # share of the rows with text in both of two columns beside each other
SNAP = 3.0  # points

Rows = Sequence[Sequence[Word]]


def separators(
    rows: Rows,
    words: Rows,
    box: Box,
    verticals: Sequence[Rule],
    size: float,
    close: Sequence[River] = (),
) -> list[float]:
    """Distances from the left at which columns meet; one fewer than there are columns.

    `rows` holds the texts of each line, `words` their words, `close` the places no wider than spaces.
    """
    drawn = _drawn(box, verticals)
    strips = _white_strips(rows, words, size, close)
    white = [strip for strip in strips if not any(_is_in(x, strip) for x in drawn)]
    between = sorted([*drawn, *((left + right) / 2 for left, right in white)])
    for x in sorted(set(between) - set(drawn)):
        if not _separates(rows, x, between):
            between.remove(x)
    return between


def _separates(rows: Rows, x: float, between: Sequence[float]) -> bool:
    """In some row there is something on either side of it, up to the next places where columns meet."""
    left = max((other for other in between if other < x), default=float("-inf"))
    right = min((other for other in between if other > x), default=float("inf"))
    both = 0
    for row in rows:
        middles = [word.box.middle_x for word in row]
        both += any(left < middle < x for middle in middles) and any(x < middle < right for middle in middles)
    return both >= max(1.0, MIN_SHARED * len(rows))


def column_of(x: float, between: Sequence[float]) -> int:
    """Which column a place belongs to."""
    return sum(x > separator for separator in between)


def _drawn(box: Box, verticals: Sequence[Rule]) -> list[float]:
    """Lines inside the table that go, one below the other, along most of its height."""
    lengths: dict[float, float] = {}
    for rule in verticals:
        at = next((x for x in lengths if abs(x - rule.at) <= SNAP), rule.at)
        lengths[at] = lengths.get(at, 0.0) + rule.length
    inner = (x for x in lengths if box.left + 2 * SNAP < x < box.right - 2 * SNAP)
    return sorted(x for x in inner if lengths[x] >= MIN_DRAWN * box.height)


def _is_in(x: float, strip: tuple[float, float]) -> bool:
    return strip[0] - SNAP <= x <= strip[1] + SNAP


def _white_strips(rows: Rows, words: Rows, size: float, close: Sequence[River]) -> list[tuple[float, float]]:
    """Strips that at most a few rows reach over, with text on both sides; and the places of close columns."""
    edges = sorted({edge for row in words for word in row for edge in (word.box.left, word.box.right)})
    allowed = max(MAX_CROSSING * len(rows), 1.0 if len(rows) > 2 else 0.0)
    strips: list[list[tuple[float, float, int]]] = [[]]
    by_text, by_word = _crossings(rows, edges), _crossings(words, edges)
    for at, (left, right) in enumerate(pairwise(edges)):
        if by_text[at] <= allowed:
            strips[-1].append((left, right, by_word[at]))
        elif strips[-1]:
            strips.append([])
    clearest = [_clearest(strip) for strip in strips if strip]
    # A gap inside a column of justified text is no place where columns meet if a close one is beside it.
    own = [
        part
        for strip, part in zip((strip for strip in strips if strip), clearest, strict=True)
        if not any(_holds(strip, river) and not _touch(part, river) for river in close)
    ]
    wide = [strip for strip in own if _is_wide(rows, strip, size) and _is_between_texts(rows, strip)]
    return [*wide, *((r.left, r.right) for r in close if not any(_touch(strip, r) for strip in wide))]


def _holds(strip: Sequence[tuple[float, float, int]], river: River) -> bool:
    return strip[0][0] <= river.right <= strip[-1][1] + 1


def _touch(strip: tuple[float, float], river: River) -> bool:
    return strip[0] <= river.right + 1 and river.left <= strip[1] + 1


def _crossings(rows: Rows, edges: Sequence[float]) -> list[int]:
    """Between each two edges that follow each other: how many rows reach over that place."""
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
    """The widest part of a strip that the fewest rows reach over."""
    fewest = min(count for _, _, count in strip)
    found: list[tuple[float, float]] = []
    for left, right, count in strip:
        if count > fewest:
            continue
        if found and found[-1][1] == left:
            found[-1] = (found[-1][0], right)
        else:
            found.append((left, right))
    return max(found, key=lambda part: part[1] - part[0])


def _is_wide(rows: Rows, strip: tuple[float, float], size: float) -> bool:
    """The gap is as wide as one between columns, counting only the rows that do not reach over it."""
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
