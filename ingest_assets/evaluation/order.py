"""Is the text in the order in which a person reads it?"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

_LONGEST_ANCHOR = 4  # words


def order_score(ours: Sequence[str], truth: Sequence[str]) -> float | None:
    """The share of recognisable words that stand in the truth's order: 1 minus what would have to be moved.

    Recognisable is a word that, with up to three that follow it, occurs exactly once on both sides, so
    missing and additional text does not count here. Of those the longest run that rises in both texts (not
    necessarily without gaps) is in order. None when no word is recognisable.
    """
    if tuple(ours) == tuple(truth):
        return 1.0 if ours else None
    places = _anchors(ours, truth)
    return _longest_rise(places) / len(places) if places else None


def _anchors(ours: Sequence[str], truth: Sequence[str]) -> list[int]:
    """In our order: where each recognisable word stands in the truth."""
    found: dict[int, int] = {}
    for length in range(1, _LONGEST_ANCHOR + 1):
        here, there = _unique(ours, length), _unique(truth, length)
        for run, at in here.items():
            if run in there:
                found.setdefault(at, there[run])
    return [found[at] for at in sorted(found)]


def _unique(words: Sequence[str], length: int) -> dict[tuple[str, ...], int]:
    """Every run of so many words that occurs once, with its place."""
    runs = [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
    counts = Counter(runs)
    return {run: at for at, run in enumerate(runs) if counts[run] == 1}


def _longest_rise(places: Sequence[int]) -> int:
    """The length of the longest increasing subsequence."""
    ends: list[int] = []
    for place in places:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends)
