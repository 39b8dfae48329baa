"""Compare a parsed Markdown text with its truth: words, headings, table cells, reading order."""

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
    """Counts of a comparison. A share is None if its denominator is 0."""

    matched: int = 0
    expected: int = 0
    parsed: int = 0

    @property
    def recall(self) -> float | None:
        """The share of the expected elements that match."""
        return self.matched / self.expected if self.expected else None

    @property
    def precision(self) -> float | None:
        """The share of the parsed elements that match."""
        return self.matched / self.parsed if self.parsed else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of recall and precision; 0.0 if one side is empty, None if both are."""
        return 2 * self.matched / (self.expected + self.parsed) if self.expected + self.parsed else None


def pooled(agreements: Iterable[Agreement]) -> Agreement:
    """Return the sum of several comparisons, as if they were one."""
    parts = list(agreements)
    return Agreement(
        sum(part.matched for part in parts),
        sum(part.expected for part in parts),
        sum(part.parsed for part in parts),
    )


def heading_agreement(parsed: Iterable[Heading], truth: Iterable[Heading]) -> Agreement:
    """Compare headings by their words, as multisets, regardless of order and level."""
    ours, expected = Counter(h.text for h in parsed), Counter(h.text for h in truth)
    return Agreement((ours & expected).total(), expected.total(), ours.total())


def level_agreement(parsed: Iterable[Heading], truth: Iterable[Heading]) -> float | None:
    """Return the share of matching headings with the right level, or None if no heading matches."""
    parsed, truth = list(parsed), list(truth)
    same_text = heading_agreement(parsed, truth).matched
    return (Counter(parsed) & Counter(truth)).total() / same_text if same_text else None


_LONGEST_ANCHOR = 4  # words


def order_score(parsed: Sequence[str], truth: Sequence[str]) -> float | None:
    """Return the share of recognizable words in the truth's order: 1 minus the share that must be moved.

    A word is recognizable if it, with up to three following words, occurs exactly once in both texts, so
    missing and additional text does not count. The longest common subsequence of these words is in order.
    None if no word is recognizable.
    """
    if tuple(parsed) == tuple(truth):
        return 1.0 if parsed else None
    anchors = _anchors(parsed, truth)
    ends: list[int] = []  # of the longest increasing subsequence
    for position in anchors:
        index = bisect_left(ends, position)
        ends[index : index + 1] = [position]
    return len(ends) / len(anchors) if anchors else None


def _anchors(parsed: Sequence[str], truth: Sequence[str]) -> list[int]:
    """Return each recognizable word's position in the truth, in the order of the parsed text."""
    anchors: dict[int, int] = {}
    for length in range(1, _LONGEST_ANCHOR + 1):
        parsed_runs, truth_runs = _unique_runs(parsed, length), _unique_runs(truth, length)
        for run, position in parsed_runs.items():
            if run in truth_runs:
                anchors.setdefault(position, truth_runs[run])
    return [anchors[position] for position in sorted(anchors)]


def _unique_runs(words: Sequence[str], length: int) -> dict[tuple[str, ...], int]:
    """Return the runs of `length` words that occur once, with their positions."""
    runs = [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
    counts = Counter(runs)
    return {run: at for at, run in enumerate(runs) if counts[run] == 1}


_MAX_PAIRS = 250_000  # of rows; larger tables are compared row by row without alignment


def cell_agreement(parsed: Sequence[Table], truth: Sequence[Table]) -> Agreement:
    """Compare cells by text and place; empty cells do not count.

    Tables are paired by content, regardless of order. In a pair, rows and columns are aligned in order, with
    gaps. A cell matches if its text, row and column do, so an additional row or column costs only its own
    cells, not those that it shifts. A table without a partner costs all its cells.
    """
    pairs = _table_pairs(parsed, truth)
    matched = sum(_aligned_cells(parsed[i], truth[j]) for i, j in pairs)
    return Agreement(matched, _cell_texts(truth).total(), _cell_texts(parsed).total())


def content_agreement(parsed: Sequence[Table], truth: Sequence[Table]) -> Agreement:
    """Compare the texts of all cells as multisets, regardless of their place."""
    ours, expected = _cell_texts(parsed), _cell_texts(truth)
    return Agreement((ours & expected).total(), expected.total(), ours.total())


def _cell_texts(tables: Sequence[Table]) -> Counter[str]:
    return Counter(cell for table in tables for row in table for cell in row if cell)


def _table_pairs(parsed: Sequence[Table], truth: Sequence[Table]) -> list[tuple[int, int]]:
    """Pair tables with those of the truth: equal ones first, then by common cells, then by order."""
    parsed_cells, truth_cells = [_cell_texts([t]) for t in parsed], [_cell_texts([t]) for t in truth]
    common = {
        (i, j): 2
        * (parsed_cells[i] & truth_cells[j]).total()
        / ((parsed_cells[i] + truth_cells[j]).total() or 1)
        for i, j in product(range(len(parsed)), range(len(truth)))
    }
    pairs: dict[int, int] = {}
    for i, j in sorted(common, key=lambda at: (parsed[at[0]] != truth[at[1]], -common[at], at[1], at[0])):
        if common[i, j] > 0 and i not in pairs and j not in pairs.values():
            pairs[i] = j
    return list(pairs.items())


def _aligned_cells(parsed: Table, truth: Table) -> int:
    rows = _aligned(parsed, truth)
    columns = _aligned(_columns(parsed), _columns(truth))
    return sum(
        bool(_cell(parsed[i], m)) and _cell(parsed[i], m) == _cell(truth[j], n)
        for (i, j), (m, n) in product(rows, columns)
    )


def _cell(row: Sequence[str], column: int) -> str:
    return row[column] if column < len(row) else ""


def _columns(table: Table) -> Table:
    width = max(map(len, table), default=0)
    return tuple(tuple(_cell(row, column) for row in table) for column in range(width))


def _aligned(parsed: Table, truth: Table) -> list[tuple[int, int]]:
    """Return the pairs of lines (rows or columns), in order, with the most common cells."""
    if len(parsed) * len(truth) > _MAX_PAIRS:
        return [(at, at) for at in range(min(len(parsed), len(truth)))]
    counts = [[Counter(filter(None, line)) for line in table] for table in (parsed, truth)]
    common = [[(a & b).total() for b in counts[1]] for a in counts[0]]
    # for each place in both, the most cells that the remaining lines can have in common
    best = [[0] * (len(truth) + 1) for _ in range(len(parsed) + 1)]
    for i, j in product(reversed(range(len(parsed))), reversed(range(len(truth)))):
        best[i][j] = max(common[i][j] + best[i + 1][j + 1], best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(parsed) and j < len(truth):
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
    """The scores of a document against its truth; None where there is nothing to compare."""

    word_ratio: float
    words: int  # of the parsed document
    truth_words: int
    headings: Agreement
    heading_levels: float | None
    cells: Agreement
    cell_contents: Agreement
    order: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return the figures of the report."""
        figures = {
            "word_ratio": self.word_ratio,
            "words": self.words,
            "truth_words": self.truth_words,
            "heading_recall": self.headings.recall,
            "heading_precision": self.headings.precision,
            "heading_f1": self.headings.f1,
            "headings": self.headings.parsed,
            "truth_headings": self.headings.expected,
            "heading_levels": self.heading_levels,
            "table_cell_f1": self.cells.f1,
            "table_content_f1": self.cell_contents.f1,
            "table_cells": self.cells.parsed,
            "truth_table_cells": self.cells.expected,
            "order": self.order,
        }
        return {name: rounded(figure) for name, figure in figures.items()}


def rounded(figure: float | None) -> float | None:
    """Round to four digits, more than these measures are precise to."""
    return round(figure, 4) if isinstance(figure, float) else figure


def score(parsed: str, truth: str) -> Scores:
    """Compare two Markdown texts by every measure."""
    left, right = read_markdown(parsed), read_markdown(truth)
    return Scores(
        word_ratio=sequence_ratio(left.words, right.words),
        words=len(left.words),
        truth_words=len(right.words),
        headings=heading_agreement(left.headings, right.headings),
        heading_levels=level_agreement(left.headings, right.headings),
        cells=cell_agreement(left.tables, right.tables),
        cell_contents=content_agreement(left.tables, right.tables),
        order=order_score(left.words, right.words),
    )
