"""Tables, cell by cell."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

from ingest_assets.evaluation.agreement import Agreement
from ingest_assets.evaluation.markdown import Table

_MOST_PAIRS = 250_000  # of rows, before two tables are compared row by row without looking for shifts


def cell_agreement(ours: Sequence[Table], truth: Sequence[Table]) -> Agreement:
    """Cells with the right text in the right place; empty cells do not count.

    Tables are paired by what they hold, whatever their order. In a pair the rows are aligned, then the
    columns, each in order and with gaps: a cell matches when its text is equal, its row is the partner of
    that row and its column the partner of that column. So one row or column too many costs its own cells and
    not all those that it shifts. Tables without a partner cost all their cells.
    """
    pairs = _pairs(ours, truth)
    matched = sum(_aligned_cells(ours[here], truth[there]) for here, there in pairs)
    return Agreement(matched, sum(map(_filled, truth)), sum(map(_filled, ours)))


def content_agreement(ours: Sequence[Table], truth: Sequence[Table]) -> Agreement:
    """The texts of all cells as multisets: what is in the tables at all, wherever it stands."""
    found, wanted = _texts(ours), _texts(truth)
    return Agreement((found & wanted).total(), wanted.total(), found.total())


def _texts(tables: Sequence[Table]) -> Counter[str]:
    return Counter(cell for table in tables for row in table for cell in row if cell)


def _filled(table: Table) -> int:
    return _texts([table]).total()


def _pairs(ours: Sequence[Table], truth: Sequence[Table]) -> list[tuple[int, int]]:
    """Which table of ours is which of the truth: equal ones first, then by what they share, then by order."""
    here, there = [_texts([t]) for t in ours], [_texts([t]) for t in truth]
    common = {
        (i, j): 2 * (here[i] & there[j]).total() / ((here[i] + there[j]).total() or 1)
        for i, j in product(range(len(ours)), range(len(truth)))
    }
    pairs: dict[int, int] = {}
    for i, j in sorted(common, key=lambda at: (ours[at[0]] != truth[at[1]], -common[at], at[1], at[0])):
        if common[i, j] > 0 and i not in pairs and j not in pairs.values():
            pairs[i] = j
    return list(pairs.items())


def _aligned_cells(ours: Table, truth: Table) -> int:
    rows = _aligned(ours, truth)
    columns = _aligned(_columns(ours), _columns(truth))
    return sum(
        bool(_cell(ours[i], m)) and _cell(ours[i], m) == _cell(truth[j], n)
        for (i, j), (m, n) in product(rows, columns)
    )


def _cell(row: Sequence[str], at: int) -> str:
    return row[at] if at < len(row) else ""


def _columns(table: Table) -> Table:
    width = max(map(len, table), default=0)
    return tuple(tuple(_cell(row, at) for row in table) for at in range(width))


def _aligned(ours: Table, truth: Table) -> list[tuple[int, int]]:
    """Pairs of lines (rows or columns), in order, that have the most cells in common."""
    if len(ours) * len(truth) > _MOST_PAIRS:
        return [(at, at) for at in range(min(len(ours), len(truth)))]
    here, there = [Counter(filter(None, line)) for line in ours], [Counter(filter(None, t)) for t in truth]
    common = [[(a & b).total() for b in there] for a in here]
    best = _best_sums(common, len(truth))
    pairs, i, j = [], 0, 0
    while i < len(ours) and j < len(truth):
        if common[i][j] and best[i][j] == common[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _best_sums(common: list[list[int]], width: int) -> list[list[int]]:
    """For each place in both, the most cells that the rest can have in common."""
    best = [[0] * (width + 1) for _ in range(len(common) + 1)]
    for i in reversed(range(len(common))):
        for j in reversed(range(width)):
            best[i][j] = max(common[i][j] + best[i + 1][j + 1], best[i + 1][j], best[i][j + 1])
    return best
