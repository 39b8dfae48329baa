"""Figures of rankings over many queries: of documents that should be found, and of passages."""

from collections.abc import Mapping, Sequence

from ingest_assets.evaluation.labelled.labelled_set import Gains
from ingest_assets.evaluation.passages import Passages
from ingest_assets.evaluation.ranking import ndcg, recall, reciprocal_rank

Figures = dict[str, float]
PASSAGE_DEPTHS = (1, 5, 10)
DOCUMENT_FIGURES = ("ndcg@10", "recall@10", "recall@100", "mrr")
PASSAGE_FIGURES = tuple(
    f"{name}@{depth}" for depth in PASSAGE_DEPTHS for name in ("token_recall", "token_precision", "token_iou")
)


def document_figures(
    rankings: Mapping[str, Sequence[str]], relevant: Gains, graded: Gains | None = None
) -> Figures:
    """Means over the queries that have a relevant document. What was not found counts as a miss."""
    per_query = [_of_query(rankings[query], relevant[query]) for query in relevant]
    figures = _means(per_query)
    if graded is not None:
        figures |= _means([{"ndcg_graded@10": ndcg(rankings[query], graded[query], 10)} for query in graded])
    return figures


def _of_query(ranking: Sequence[str], gains: Mapping[str, float]) -> Figures:
    return {
        "ndcg@10": ndcg(ranking, gains, 10),
        "recall@10": recall(ranking, gains, 10),
        "recall@100": recall(ranking, gains, 100),
        "mrr": reciprocal_rank(ranking, gains),
    }


def passage_figures(
    rankings: Mapping[str, Sequence[str]], passages: Passages, queries: Sequence[str]
) -> Figures:
    """Means over some queries of how much of the wanted passages the best chunks hold, and how much else."""
    return _means(
        [
            {
                f"{name}@{depth}": value
                for depth in PASSAGE_DEPTHS
                for name, value in passages.overlap(query, rankings[query][:depth]).as_dict().items()
            }
            for query in queries
        ]
    )


def _means(rows: Sequence[Figures]) -> Figures:
    names = rows[0] if rows else {}
    return {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in names}
