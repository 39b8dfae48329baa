"""What every labelled set is, whatever its files look like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Gains = Mapping[str, Mapping[str, float]]  # by query and document; only what is relevant, above 0


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Documents as a folder or as texts by file name; queries; and what they should find.

    `graded` are other gains for a second nDCG. `spans` say in which document and where in its text a query is
    answered. `missing` are documents of the set that have no text.
    """

    name: str
    queries: Mapping[str, str]
    relevant: Gains
    folder: Path | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    graded: Gains | None = None
    spans: Mapping[str, tuple[str, Sequence[tuple[int, int]]]] = field(default_factory=dict)
    missing: Sequence[str] = ()


def relevant_only(gains: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Without gains of nothing, and without queries for which nothing is relevant."""
    kept = {query: {doc: gain for doc, gain in found.items() if gain > 0} for query, found in gains.items()}
    return {query: found for query, found in kept.items() if found}
