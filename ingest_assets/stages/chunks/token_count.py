"""Fast token counters with exactly the tokenizer's counts, without special tokens."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

# Counts by word: WordPiece handles one word at a time, so each word needs to be counted only once.

_MAX_CACHED_WORDS = 100_000
_MAX_CACHED_LENGTH = 512  # URLs count as words
_PARTS = re.compile(r"[0-9A-Za-z]+")


class WordCounter:
    """Adds up the tokens of a text's words, and caches the count of each word.

    `definition` is the content of the tokenizer's file; `is_additive` must be true for it.
    """

    def __init__(self, tokenizer: Any, definition: Mapping[str, Any]) -> None:
        self._encode = tokenizer.encode
        self._known = {"": 0}
        self._lowercases = bool(definition["normalizer"]["lowercase"])
        model, added = (
            definition["model"],
            [token["content"] for token in definition.get("added_tokens") or []],
        )
        self._longest = longest = model["max_input_chars_per_word"]
        # Entries of letters and digits only are the longest match, and so one token, if they are a word.
        self._parts = {word for word in model["vocab"] if _PARTS.fullmatch(word) and len(word) <= longest}
        if not all(map(str.isascii, added)):
            self._parts = set()  # after normalization they can be any text
        self._added_starts = {token[0] for token in added}
        self._added_starts |= {start.swapcase() for start in self._added_starts}

    def __call__(self, text: str) -> int:
        # Only these four: the tokenizer treats other blanks as letters, or drops them as control characters.
        words = text.replace("\n", " ").replace("\t", " ").replace("\r", " ").split(" ")
        try:
            return sum(map(self._known.__getitem__, words))
        except KeyError:
            return self._sum(words)

    def _sum(self, words: Sequence[str]) -> int:
        """Count words of which some are not cached yet, and cache them."""
        known = self._known
        counts: dict[str, int] = {}
        uncounted = []
        for word in dict.fromkeys(words):
            if word in known:
                continue
            count = self._by_parts(word)
            if count is None:
                uncounted.append(word)
            else:
                counts[word] = count
        if uncounted:
            tokens = Counter(self._encode(uncounted, is_pretokenized=True, add_special_tokens=False).word_ids)
            counts.update((word, tokens[index]) for index, word in enumerate(uncounted))
        total = sum(counts[word] if word in counts else known[word] for word in words)
        if len(known) > _MAX_CACHED_WORDS:
            known.clear()
            known[""] = 0
        known.update((word, count) for word, count in counts.items() if len(word) <= _MAX_CACHED_LENGTH)
        return total

    def _by_parts(self, word: str) -> int | None:
        """Count one token per run of letters and digits and one per other character; None unless the word is
        printable ASCII and each run is in the vocabulary, or too long for it."""
        if not (word.isascii() and word.isprintable()) or not self._added_starts.isdisjoint(word):
            return None
        runs = _PARTS.findall(word.lower() if self._lowercases else word)
        if not self._parts.issuperset(run for run in runs if len(run) <= self._longest):
            return None
        return len(word) - sum(map(len, runs)) + len(runs)


_PROBE = (
    "Tokens, counted twice: naïve café 東京 it's [SEP]x ##ing\tan\u00adti\u200bdis-\nestablish\r\n"
    "0123456789 ﬁ Ǆ İstanbul \u0301a e\u0301 😀👩\u200d👩 \x00\x0b\x85\xa0\ufffd  _ " + "pneumono" * 20
)
_MAX_CACHED_TEXT_LENGTH = 4096
_MAX_CACHED_TEXTS = 4096
_PRINTED = "".join(map(chr, range(0x21, 0x7F)))
_PREPENDED = (  # in Unicode, these form one character with a following blank
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2"
    "\U000111c3\U0001193f\U00011941\U00011a3a\U00011a84\U00011a85\U00011a86\U00011a87\U00011a88\U00011a89"
    "\U00011d46\U00011f02"
)
_BY_CHARACTER = frozenset({"NFC", "NFD", "NFKC", "NFKD", "Precompiled"})
_JOINING_BLANKS = [
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": blank} for blank in (" ", "\u2581")
]


TokenCounter = Callable[[str], int]


def open_counter(tokenizer: Any) -> TokenCounter:
    """Return the fastest counter with the same counts as this tokenizer of transformers.

    WordPiece is counted word by word. Other tokenizers, and those that differ in a probe, count themselves.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return TokenizerCounter(tokenizer)
    from tokenizers import Tokenizer

    serialized = backend.to_str()
    copy = Tokenizer.from_str(serialized)
    copy.no_truncation()
    copy.no_padding()
    definition = json.loads(serialized)
    counters: list[TokenCounter] = [WordCounter(copy, definition)] if is_additive(definition) else []
    counters.append(TextCounter(copy, has_token_per_word=has_token_per_word(copy, definition)))
    # Probes: a text of awkward characters, its words, and its tails from every seventh character.
    probes = [_PROBE, "", *_PROBE.split(" "), *(_PROBE[start:] for start in range(0, len(_PROBE), 7))]
    slow = TokenizerCounter(tokenizer)
    expected = list(map(slow, probes))
    return next((counter for counter in counters if list(map(counter, probes)) == expected), slow)


def is_additive(definition: Mapping[str, Any]) -> bool:
    """Return True if a text has as many tokens as its words together, by the tokenizer's file.

    This is known for BERT's normalizer and pre-tokenizer with WordPiece: no step works across a blank, unless
    an added token contains one or takes those next to it.
    """
    kinds = [(definition.get(part) or {}).get("type") for part in ("normalizer", "pre_tokenizer", "model")]
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"] and not any(
        token["lstrip"] or token["rstrip"] or token["single_word"] or len(token["content"].split()) != 1
        for token in definition.get("added_tokens") or []
    )


def has_token_per_word(tokenizer: Any, definition: Mapping[str, Any]) -> bool:
    """Return True if a text has at least as many tokens as words of printable ASCII between blanks.

    This is known if the steps before the model neither drop nor join such words, and the model returns a
    token for each: byte pairs of GPT-2's kind without a normalizer, and Unigram with Metaspace.
    """
    if any(token["content"].split() != [token["content"]] for token in definition.get("added_tokens") or []):
        return False
    steps, model = _steps(definition.get("pre_tokenizer"), "pretokenizers"), definition["model"]
    kinds = [step["type"] for step in steps]
    if model["type"] == "BPE":
        is_cut = kinds == ["ByteLevel"] and steps[0].get("use_regex", True)
        return is_cut and definition.get("normalizer") is None and model["vocab"].keys() >= set(_PRINTED)
    if model["type"] != "Unigram" or kinds not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"]):
        return False
    return steps[-1].get("split", True) and _keeps_words(tokenizer.normalizer, definition.get("normalizer"))


def _keeps_words(normalizer: Any, definition: Mapping[str, Any] | None) -> bool:
    """Return True for a normalizer that works on single characters with their marks and keeps ASCII."""
    steps = _steps(definition, "normalizers")
    if not all(step["type"] in _BY_CHARACTER or step in _JOINING_BLANKS for step in steps):
        return False
    return not steps or (
        all(normalizer.normalize_str(f"a{mark}a") == f"a{mark}a" for mark in f" {_PRINTED}")
        and all(normalizer.normalize_str(f"{mark} a").endswith((" a", "\u2581a")) for mark in _PREPENDED)
    )


def _steps(definition: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    if definition is None:
        return []
    return list(definition[name]) if definition["type"] == "Sequence" else [definition]


class TextCounter:
    """Counts whole texts with the tokenizer, and caches recent counts."""

    def __init__(self, tokenizer: Any, *, has_token_per_word: bool = False) -> None:
        self.has_token_per_word = has_token_per_word
        self._encode = tokenizer.encode
        self._known: dict[str, int] = {}

    def __call__(self, text: str, /) -> int:
        count = self._known.get(text)
        if count is None:
            count = len(self._encode(text, add_special_tokens=False))
            if len(text) <= _MAX_CACHED_TEXT_LENGTH:
                if len(self._known) >= _MAX_CACHED_TEXTS:
                    self._known.clear()
                self._known[text] = count
        return count


class TokenizerCounter:
    """Counts with the tokenizer in the same way as Docling."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __call__(self, text: str, /) -> int:
        return len(self._tokenizer.tokenize(text))


# Counters that stop at a limit: enough to find out whether a text fits.

_CHARS_PER_TOKEN = 8  # more than most texts have, so that one part is usually enough
_CACHED_PARTS = 4  # a search for the place to cut counts many texts with the same start


def capped_counter(counter: TokenCounter, max_tokens: int) -> TokenCounter:
    """Return a counter that is exact up to `max_tokens`, and returns any greater number for longer texts.

    It counts only the start of a long text if the start's tokens are known to be tokens of the whole text.
    """
    step = _CHARS_PER_TOKEN * max_tokens
    if isinstance(counter, WordCounter):
        return _in_parts(counter, step, max_tokens)
    if not (isinstance(counter, TextCounter) and counter.has_token_per_word):
        return counter
    words = _in_parts(count_plain_words, step, max_tokens)

    def by_words_first(text: str) -> int:
        """Return the number of plain words if it is above the limit already, else the count of tokens."""
        plain_words = words(text) if len(text) > step else 0
        return plain_words if plain_words > max_tokens else counter(text)

    return by_words_first


def _in_parts(counter: TokenCounter, step: int, max_tokens: int) -> TokenCounter:
    """Return a counter that adds up parts until the limit. Its counter must not count across a blank."""
    cached = lru_cache(maxsize=_CACHED_PARTS)(counter)

    def count(text: str) -> int:
        start = total = 0
        while start < len(text) and total <= max_tokens:
            end = text.find(" ", start + step)
            end = end if end >= 0 else len(text)
            total += cached(text[start:end])
            start = end
        return total

    return count


def count_plain_words(text: str, /) -> int:
    """Count the words of printable ASCII between blanks."""
    return sum(word != "" and word.isascii() and word.isprintable() for word in text.split(" "))
