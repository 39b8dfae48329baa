"""Figures that must be reached, as in `dense.ndcg@10=0.395`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ingest_assets.model.errors import ConfigError

_GATE = re.compile(r"([a-z]+)\.([a-z_]+(?:@\d+)?)=(\d*\.?\d+)")


@dataclass(frozen=True, slots=True)
class Gate:
    """The least that a figure of a ranking may be."""

    ranking: str
    figure: str
    least: float

    def judged(self, rankings: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
        """The gate and what was reached; refuses a gate on a figure that there is not."""
        figures = rankings.get(self.ranking)
        if figures is None or self.figure not in figures:
            known = ", ".join(rankings) if figures is None else ", ".join(figures)
            what = f"ranking {self.ranking!r}" if figures is None else f"figure {self.figure!r}"
            raise ConfigError(f"--at-least: there is no {what}; there is {known}.")
        reached = figures[self.figure]
        return {
            "figure": f"{self.ranking}.{self.figure}",
            "at_least": self.least,
            "reached": reached,
            "passed": reached >= self.least,
        }


def read_gate(text: str) -> Gate:
    """A gate as it is given on the command line."""
    match = _GATE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"--at-least: {text!r} should be like dense.ndcg@10=0.395.")
    return Gate(match[1], match[2], float(match[3]))
