"""Where in a text a chunk of it stands, by its tokens: whitespace and lost markup do not matter."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher

_GRAM = 3
_SLACK = 40  # tokens by which a chunk's place may be shifted inside itself: markup that reading took away


class TextIndex:
    """A text's tokens. Chunks are asked for in order: where a text repeats itself, the next place counts."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = list(tokens)
        self._grams: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place in range(len(tokens) - _GRAM + 1):
            self._grams[tuple(tokens[place : place + _GRAM])].append(place)
        self._next = 0

    def places_of(self, chunk: Sequence[str]) -> list[int]:
        """Which tokens of the text the chunk's tokens are, in order; those without a place are left out."""
        start = self._start_of(chunk)
        if start is None:
            return []
        places = self._places_from(start, list(chunk))
        self._next = places[-1] + 1 if places else self._next
        return places

    def _places_from(self, start: int, chunk: list[str]) -> list[int]:
        if self._tokens[start : start + len(chunk)] == chunk:
            return list(range(start, start + len(chunk)))
        low = max(0, start - _SLACK)
        window = self._tokens[low : start + len(chunk) + 2 * _SLACK]
        matcher = SequenceMatcher(None, window, chunk, autojunk=False)
        return [low + m.a + offset for m in matcher.get_matching_blocks() for offset in range(m.size)]

    def _start_of(self, chunk: Sequence[str]) -> int | None:
        """Where most runs of three tokens say that the chunk begins; if many, the nearest to the last end."""
        votes: Counter[int] = Counter()
        for offset in range(max(len(chunk) - _GRAM + 1, 1)):
            for place in self._grams.get(tuple(chunk[offset : offset + _GRAM]), ()):
                votes[place - offset] += 1
        if not votes:
            return self._short_start(chunk)
        most = max(votes.values())
        good = [start for start, count in votes.items() if count >= 0.9 * most]
        return max(0, min(good, key=lambda start: (abs(start - self._next), start)))

    def _short_start(self, chunk: Sequence[str]) -> int | None:
        """A chunk too short for a run, or without one in the text: after the last one, if anywhere."""
        return self._next if chunk else None
