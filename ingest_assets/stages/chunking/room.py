"""What a chunk has room for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ingest_assets.stages.chunking.counting import TokenCounter


class Unit(NamedTuple):
    """A text that is not cut any further, and what has to stand at the top of its chunk."""

    top: str
    text: str


@dataclass(frozen=True, slots=True)
class Room:
    """What a chunk holds, and how a text that is too long for it is cut."""

    most_tokens: int
    count: TokenCounter
    cut: Callable[[str, int], list[str]]

    def fits(self, text: str) -> bool:
        return self.count(text) <= self.most_tokens

    def has_half_left_below(self, text: str) -> bool:
        return 2 * self.count(text) <= self.most_tokens

    def left_below(self, text: str) -> int:
        """Tokens that are left where this stands above."""
        return self.most_tokens - self.count(text)

    def cut_to_fit(self, text: str) -> list[str]:
        """The text's parts, each as much as a chunk holds."""
        return self.cut(text, self.most_tokens)
