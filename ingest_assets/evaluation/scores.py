"""Every measure of one document, from two Markdown texts."""

from dataclasses import dataclass
from typing import Any

from ingest_assets.evaluation.agreement import Agreement
from ingest_assets.evaluation.headings import heading_agreement, level_agreement
from ingest_assets.evaluation.markdown import read_markdown
from ingest_assets.evaluation.order import order_score
from ingest_assets.evaluation.tables import cell_agreement, content_agreement
from ingest_assets.evaluation.words import sequence_ratio


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
