"""Metrics and fusion of rankings. A ranking is a list of distinct names, best first."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

RRF_K = 60  # from Cormack, Clarke and Büttcher, who proposed reciprocal-rank fusion


def ndcg(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Return the discounted gain of the first `k`, relative to the best possible ranking."""
    gain = _discounted(gains.get(name, 0.0) for name in ranking[:k])
    ideal = _discounted(sorted(gains.values(), reverse=True)[:k])
    return gain / ideal if ideal else 0.0


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(position + 2) for position, gain in enumerate(gains))


def recall(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant names that is among the first `k`."""
    return len(set(ranking[:k]) & set(relevant)) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Return one divided by the rank of the first relevant name; 0 if there is none."""
    return next((1 / rank for rank, name in enumerate(ranking, start=1) if name in relevant), 0.0)


def fused(rankings: Iterable[Sequence[str]], k: int = RRF_K) -> list[str]:
    """Fuse rankings by reciprocal rank. A ranking adds nothing to names it lacks; ties go by name."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=1):
            scores[name] = scores.get(name, 0.0) + 1 / (k + rank)
    return sorted(scores, key=lambda name: (-scores[name], name))


def rank_documents(chunks: Iterable[str], document_of: Mapping[str, str]) -> list[str]:
    """Return the documents of ranked chunks, each at the rank of its best chunk."""
    return list(dict.fromkeys(document_of[chunk] for chunk in chunks))
