"""Compare two Markdown texts, what was read and the truth: words, headings, table cells, reading order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ingest_assets.evaluation.markdown import Heading, Table, read_markdown, sequence_ratio


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of a comparison. A share is None where there is nothing to share."""

    matched: int = 0
    wanted: int = 0
    found: int = 0

    @property
    def recall(self) -> float | None:
        """The share of what was wanted that was found."""
        return self.matched / self.wanted if self.wanted else None

    @property
    def precision(self) -> float | None:
        """The share of what was found that was wanted."""
        return self.matched / self.found if self.found else None

    @property
    def f1(self) -> float | None:
        """Both in one figure; 0.0 where one side has none, None where both have none."""
        return 2 * self.matched / (self.wanted + self.found) if self.wanted + self.found else None


def pooled(agreements: Iterable[Agreement]) -> Agreement:
    """The sum of several comparisons, as if they were one."""
    parts = list(agreements)
    return Agreement(
        sum(part.matched for part in parts),
        sum(part.wanted for part in parts),
        sum(part.found for part in parts),
    )


def heading_agreement(ours: Iterable[Heading], truth: Iterable[Heading]) -> Agreement:
    """Headings with equal words, as multisets: neither their order nor their level counts here."""
    found, wanted = Counter(h.text for h in ours), Counter(h.text for h in truth)
    return Agreement((found & wanted).total(), wanted.total(), found.total())


def level_agreement(ours: Iterable[Heading], truth: Iterable[Heading]) -> float | None:
    """The share of the headings found whose level is that of the truth; None when none was found."""
    ours, truth = list(ours), list(truth)
    same_text = heading_agreement(ours, truth).matched
    return (Counter(ours) & Counter(truth)).total() / same_text if same_text else None


_LONGEST_ANCHOR = 4  # words


def order_score(ours: Sequence[str], truth: Sequence[str]) -> float | None:
    """The share of recognisable words that stand in the truth's order: 1 minus what would have to be moved.

    Recognisable is a word that, with up to three that follow it, occurs exactly once on both sides, so
    missing and additional text does not count here. Of those the longest run that rises in both texts (not
    necessarily without gaps) is in order. None when no word is recognisable.
    """
    if tuple(ours) == tuple(truth):
        return 1.0 if ours else None
    places = _anchors(ours, truth)
    ends: list[int] = []  # of the longest increasing subsequence
    for place in places:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends) / len(places) if places else None


def _anchors(ours: Sequence[str], truth: Sequence[str]) -> list[int]:
    """In our order: where each recognisable word stands in the truth."""
    found: dict[int, int] = {}
    for length in range(1, _LONGEST_ANCHOR + 1):
        here, there = _unique_runs(ours, length), _unique_runs(truth, length)
        for run, at in here.items():
            if run in there:
                found.setdefault(at, there[run])
    return [found[at] for at in sorted(found)]


def _unique_runs(words: Sequence[str], length: int) -> dict[tuple[str, ...], int]:
    """Every run of so many words that occurs once, with its place."""
    runs = [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
    counts = Counter(runs)
    return {run: at for at, run in enumerate(runs) if counts[run] == 1}


_MOST_PAIRS = 250_000  # of rows, before two tables are compared row by row without looking for shifts


def cell_agreement(ours: Sequence[Table], truth: Sequence[Table]) -> Agreement:
    """Cells with the right text in the right place; empty cells do not count.

    Tables are paired by what they hold, whatever their order. In a pair the rows are aligned, then the
    columns, each in order and with gaps: a cell matches when its text is equal, its row is the partner of
    that row and its column the partner of that column. So one row or column too many costs its own cells and
    not all those that it shifts. Tables without a partner cost all their cells.
    """
    pairs = _table_pairs(ours, truth)
    matched = sum(_aligned_cells(ours[here], truth[there]) for here, there in pairs)
    return Agreement(matched, _cell_texts(truth).total(), _cell_texts(ours).total())


def content_agreement(ours: Sequence[Table], truth: Sequence[Table]) -> Agreement:
    """The texts of all cells as multisets: what is in the tables at all, wherever it stands."""
    found, wanted = _cell_texts(ours), _cell_texts(truth)
    return Agreement((found & wanted).total(), wanted.total(), found.total())


def _cell_texts(tables: Sequence[Table]) -> Counter[str]:
    return Counter(cell for table in tables for row in table for cell in row if cell)


def _table_pairs(ours: Sequence[Table], truth: Sequence[Table]) -> list[tuple[int, int]]:
    """Which table of ours is which of the truth: equal ones first, then by what they share, then by order."""
    here, there = [_cell_texts([t]) for t in ours], [_cell_texts([t]) for t in truth]
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
    # for each place in both, the most cells that the rest can have in common
    best = [[0] * (len(truth) + 1) for _ in range(len(ours) + 1)]
    for i, j in product(reversed(range(len(ours))), reversed(range(len(truth)))):
        best[i][j] = max(common[i][j] + best[i + 1][j + 1], best[i + 1][j], best[i][j + 1])
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


@dataclass(frozen=True, slots=True)
class Scores:
    """How a document that was read compares with its truth; None where there is nothing to compare."""

    word_ratio: float
    words: int  # of ours
    truth_words: int
    headings: Agreement
    heading_levels: float | None
    cells: Agreement
    cell_contents: Agreement
    order: float | None

    def as_dict(self) -> dict[str, Any]:
        """The figures, as they are reported."""
        figures = {
            "word_ratio": self.word_ratio,
            "words": self.words,
            "truth_words": self.truth_words,
            "heading_recall": self.headings.recall,
            "heading_precision": self.headings.precision,
            "heading_f1": self.headings.f1,
            "headings": self.headings.found,
            "truth_headings": self.headings.wanted,
            "heading_levels": self.heading_levels,
            "table_cell_f1": self.cells.f1,
            "table_content_f1": self.cell_contents.f1,
            "table_cells": self.cells.found,
            "truth_table_cells": self.cells.wanted,
            "order": self.order,
        }
        return {name: rounded(figure) for name, figure in figures.items()}


def rounded(figure: float | None) -> float | None:
    """Four digits are more than a measure like this can mean."""
    return round(figure, 4) if isinstance(figure, float) else figure


def score(ours: str, truth: str) -> Scores:
    """Compare two Markdown texts by every measure."""
    here, there = read_markdown(ours), read_markdown(truth)
    return Scores(
        word_ratio=sequence_ratio(here.words, there.words),
        words=len(here.words),
        truth_words=len(there.words),
        headings=heading_agreement(here.headings, there.headings),
        heading_levels=level_agreement(here.headings, there.headings),
        cells=cell_agreement(here.tables, there.tables),
        cell_contents=content_agreement(here.tables, there.tables),
        order=order_score(here.words, there.words),
    )
