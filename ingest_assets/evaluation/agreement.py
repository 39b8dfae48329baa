"""How much of what was wanted was found, and how much of what was found was wanted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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
