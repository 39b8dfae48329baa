"""Input and output of a benchmark: sizes, numbers with units, and required values."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

Relation = Literal["<", "<=", "=", ">="]
Given = TypeVar("Given")

_HOLDS: Mapping[Relation, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Size:
    """How much of a benchmark to run, and on what. Required values apply at scale 1 only."""

    scale: float = 1.0
    corpus: Path | None = None

    def of(self, count: int) -> int:
        """Scale a number of items, to at least one."""
        return max(1, round(count * self.scale))

    def some(self, items: Sequence[Given]) -> list[Given]:
        """Return all of them at scale 1, below it an even selection."""
        count = min(self.of(len(items)), len(items))
        return [items[len(items) * at // count] for at in range(count)]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. Without a relation it is for information.

    `spread` is the least and the greatest of the rounds it is the best of; `note` says what it was made of.
    A figure that needs the full size is not wanted of a smaller one.
    """

    name: str
    value: float
    unit: str = ""
    relation: Relation | None = None
    bound: float = 0.0
    spread: tuple[float, float] | None = None
    note: str = ""
    needs_full_size: bool = False

    @property
    def wanted(self) -> str:
        """`>= 50000`, or an empty string."""
        return "" if self.relation is None else f"{self.relation} {self.bound:g}"

    @property
    def is_ok(self) -> bool:
        """True if there is no requirement, or if it is met."""
        return self.relation is None or _HOLDS[self.relation](self.value, self.bound)

    def at(self, size: Size) -> "Figure":
        """Return the figure as judged at a size: information if it needs the full size, with a note."""
        if size.scale >= 1 or not self.needs_full_size:
            return self
        note = f"{self.note}; {self.wanted} is wanted at full size only".lstrip("; ")
        return replace(self, relation=None, note=note)

    def as_row(self, benchmark: str) -> dict[str, Any]:
        """Return a row for the JSON file."""
        return {
            "benchmark": benchmark,
            "figure": self.name,
            "value": self.value,
            "unit": self.unit,
            "wanted": self.wanted,
            "ok": self.is_ok,
            **({"spread": list(self.spread)} if self.spread else {}),
            **({"note": self.note} if self.note else {}),
        }
