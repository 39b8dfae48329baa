"""Figures that must be reached, as in `dense.ndcg@10=0.395`."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ingest_assets.model.errors import ConfigError

RANKINGS = ("dense", "sparse", "lexical", "fused")
_GATE = re.compile(r"([a-z]+)\.([a-z_]+(?:@\d+)?)=(\d*\.?\d+)")


@dataclass(frozen=True, slots=True)
class Gate:
    """The least that a figure of a ranking may be."""

    ranking: str
    figure: str
    least: float

    def judged(self, rankings: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
        """The gate and what was reached; a family that was not searched has reached nothing."""
        reached = rankings.get(self.ranking, {}).get(self.figure, 0.0)
        return {
            "figure": f"{self.ranking}.{self.figure}",
            "at_least": self.least,
            "reached": reached,
            "passed": reached >= self.least,
        }


def read_gate(text: str, figures: Collection[str]) -> Gate:
    """A gate as it is given on the command line, on one of the figures there will be."""
    match = _GATE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"--at-least: {text!r} should be like dense.ndcg@10=0.395.")
    for given, known in ((match[1], RANKINGS), (match[2], figures)):
        if given not in known:
            raise ConfigError(f"--at-least: there is no {given!r}; there is {', '.join(known)}.")
    return Gate(match[1], match[2], float(match[3]))
