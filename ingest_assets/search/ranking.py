"""How good a ranking is, and how rankings become one. Rankings are names, best first, each once."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

RRF_K = 60  # of Cormack, Clarke and Büttcher, who proposed reciprocal-rank fusion


def ndcg(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Discounted gain of the first `k`, against that of the best possible ranking."""
    found = _discounted(gains.get(name, 0.0) for name in ranking[:k])
    ideal = _discounted(sorted(gains.values(), reverse=True)[:k])
    return found / ideal if ideal else 0.0


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def recall(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """The share of what is relevant that is among the first `k`."""
    return len(set(ranking[:k]) & set(relevant)) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """One divided by the place of the first that is relevant; 0 when none is."""
    return next((1 / place for place, name in enumerate(ranking, start=1) if name in relevant), 0.0)


def fused(rankings: Iterable[Sequence[str]], k: int = RRF_K) -> list[str]:
    """Reciprocal-rank fusion; a name that a ranking lacks gets nothing from it. Equal ones go by name."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, name in enumerate(ranking, start=1):
            scores[name] = scores.get(name, 0.0) + 1 / (k + place)
    return sorted(scores, key=lambda name: (-scores[name], name))


def best_first(chunks: Iterable[str], document_of: Mapping[str, str]) -> list[str]:
    """Documents by their best chunk, of chunks that are ranked."""
    return list(dict.fromkeys(document_of[chunk] for chunk in chunks))
