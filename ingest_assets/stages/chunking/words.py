"""Tokens of a text by its words: WordPiece looks at one word at a time, so a word need be looked at once."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_MOST_REMEMBERED = 100_000
_LONGEST_REMEMBERED = 512  # addresses count as words
_PARTS = re.compile(r"[0-9A-Za-z]+")


class ByWord:
    """Adds up the tokens of a text's words, and remembers those of each word.

    `form` is what the tokenizer's file says; `is_additive` must be true of it.
    """

    def __init__(self, tokenizer: Any, form: Mapping[str, Any]) -> None:
        self._encode = tokenizer.encode
        self._known = {"": 0}
        self._longest = form["model"]["max_input_chars_per_word"]
        self._parts = _whole_words(form)
        self._lowers = bool(form["normalizer"]["lowercase"])
        self._signs = {token["content"][0] for token in form.get("added_tokens") or []}
        self._signs |= {sign.swapcase() for sign in self._signs}

    def __call__(self, text: str) -> int:
        # Only these four: to the tokenizer other blanks are letters, or control characters that it drops.
        words = text.replace("\n", " ").replace("\t", " ").replace("\r", " ").split(" ")
        try:
            return sum(map(self._known.__getitem__, words))
        except KeyError:
            return self._sum(words)

    def _sum(self, words: Sequence[str]) -> int:
        known = self._known
        counts = self._counts([word for word in dict.fromkeys(words) if word not in known])
        total = sum(counts[word] if word in counts else known[word] for word in words)
        if len(known) > _MOST_REMEMBERED:
            known.clear()
            known[""] = 0
        known.update((word, count) for word, count in counts.items() if len(word) <= _LONGEST_REMEMBERED)
        return total

    def _counts(self, words: Sequence[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        odd = []
        for word in words:
            count = self._by_parts(word)
            if count is None:
                odd.append(word)
            else:
                counts[word] = count
        if odd:
            found = Counter(self._encode(odd, is_pretokenized=True, add_special_tokens=False).word_ids)
            counts.update((word, found[at]) for at, word in enumerate(odd))
        return counts

    def _by_parts(self, word: str) -> int | None:
        """Of plain ASCII whose every run of letters and digits is an entry, or too long to be looked up: one
        for each run, and one for each sign."""
        if not (word.isascii() and word.isprintable()) or not self._signs.isdisjoint(word):
            return None
        runs = _PARTS.findall(word.lower() if self._lowers else word)
        if not self._parts.issuperset(run for run in runs if len(run) <= self._longest):
            return None
        return len(word) - sum(map(len, runs)) + len(runs)


def _whole_words(form: Mapping[str, Any]) -> set[str]:
    """Entries of letters and digits alone: the longest match, and so one token, wherever they are a word."""
    model, added = form["model"], form.get("added_tokens") or []
    if not all(token["content"].isascii() for token in added):
        return set()  # normalised, it may be anything
    longest = model["max_input_chars_per_word"]
    return {entry for entry in model["vocab"] if _PARTS.fullmatch(entry) and len(entry) <= longest}
