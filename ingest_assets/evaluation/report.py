"""Figures over many documents."""

from collections.abc import Callable, Sequence
from typing import Any

from ingest_assets.evaluation.agreement import Agreement, pooled
from ingest_assets.evaluation.parse import Measured
from ingest_assets.evaluation.scores import Scores, rounded


def report_object(measured: Sequence[Measured]) -> dict[str, Any]:
    """The whole report: each document, each format, and all together."""
    kinds = sorted({one.sample.kind for one in measured})
    return {
        "documents": [one.as_dict() for one in measured],
        "by_kind": {kind: totals([one for one in measured if one.sample.kind == kind]) for kind in kinds},
        "total": totals(measured),
    }


def totals(measured: Sequence[Measured]) -> dict[str, Any]:
    """Means over the scored documents that have such a figure; `pooled` counts all their parts as one."""
    read = [one for one in measured if one.error is None]
    scores = [one.scores for one in read if one.scores is not None]
    headings, cells = pooled(s.headings for s in scores), pooled(s.cells for s in scores)
    return {
        "documents": len(measured),
        "read": len(read),
        "failed": len(measured) - len(read),
        "scored": len(scores),
        "word_ratio": _mean(scores, lambda s: s.word_ratio),
        "heading_recall": _mean(scores, lambda s: s.headings.recall),
        "heading_precision": _mean(scores, lambda s: s.headings.precision),
        "heading_f1": _mean(scores, lambda s: s.headings.f1),
        "heading_levels": _mean(scores, lambda s: s.heading_levels),
        "table_cell_f1": _mean(scores, lambda s: s.cells.f1),
        "table_content_f1": _mean(scores, lambda s: s.cell_contents.f1),
        "order": _mean(scores, lambda s: s.order),
        "pooled": {"headings": _shares(headings), "table_cells": _shares(cells)},
        **speed(read),
    }


def speed(read: Sequence[Measured]) -> dict[str, float | int | None]:
    """Pages a second over the documents that have pages, documents a second over all; one reader, warm."""
    paged = [one for one in read if one.pages]
    seconds, paged_seconds = sum(one.seconds for one in read), sum(one.seconds for one in paged)
    pages = sum(one.pages for one in paged)
    return {
        "pages": pages,
        "seconds": round(seconds, 4),
        "pages_per_s": round(pages / paged_seconds, 3) if paged_seconds else None,
        "documents_per_s": round(len(read) / seconds, 3) if seconds else None,
    }


def _mean(scores: Sequence[Scores], figure: Callable[[Scores], float | None]) -> float | None:
    values = [value for value in map(figure, scores) if value is not None]
    return rounded(sum(values) / len(values)) if values else None


def _shares(agreement: Agreement) -> dict[str, float | int | None]:
    return {
        "recall": rounded(agreement.recall),
        "precision": rounded(agreement.precision),
        "f1": rounded(agreement.f1),
        "matched": agreement.matched,
        "wanted": agreement.wanted,
        "found": agreement.found,
    }
