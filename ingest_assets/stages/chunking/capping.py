"""Counts that stop at a limit, for those who only ask whether a text fits."""

from functools import lru_cache

from ingest_assets.stages.chunking.counting import ByText, TokenCounter
from ingest_assets.stages.chunking.words import ByWord

_LETTERS_PER_TOKEN = 8  # more than most texts have, so that one look is mostly enough
_PARTS_REMEMBERED = 4  # whoever searches for a place to cut asks about many texts of the same start


def capped(counter: TokenCounter, most_tokens: int) -> TokenCounter:
    """Counts up to `most_tokens` as `counter` does, and gives some greater number for every longer text.

    Only a long text's start is looked at where its tokens are known to be some of the text's.
    """
    if isinstance(counter, ByWord):
        return _InParts(counter, most_tokens)
    if isinstance(counter, ByText) and counter.has_a_token_for_each_word:
        return _ByWordsFirst(counter, most_tokens)
    return counter


class _InParts:
    """Adds up part after part until they are too many. Nothing may be counted across a blank."""

    def __init__(self, counter: TokenCounter, most_tokens: int) -> None:
        self._counter = lru_cache(maxsize=_PARTS_REMEMBERED)(counter)
        self._most_tokens = most_tokens
        self.step = _LETTERS_PER_TOKEN * most_tokens

    def __call__(self, text: str, /) -> int:
        start = total = 0
        while start < len(text) and total <= self._most_tokens:
            end = text.find(" ", start + self.step)
            end = end if end >= 0 else len(text)
            total += self._counter(text[start:end])
            start = end
        return total


class _ByWordsFirst:
    """A text whose plain words are too many has too many tokens; any other is counted as a whole."""

    def __init__(self, counter: TokenCounter, most_tokens: int) -> None:
        self._counter = counter
        self._most_tokens = most_tokens
        self._words = _InParts(plain_words, most_tokens)

    def __call__(self, text: str, /) -> int:
        fewest = self._words(text) if len(text) > self._words.step else 0
        return fewest if fewest > self._most_tokens else self._counter(text)


def plain_words(text: str, /) -> int:
    """How many words between blanks are of printable ASCII alone."""
    return sum(word != "" and word.isascii() and word.isprintable() for word in text.split(" "))
