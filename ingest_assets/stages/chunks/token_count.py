"""Tokens of a text, exactly as its tokenizer counts them, without the special tokens around it."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

# Tokens of a text by its words: WordPiece looks at one word at a time, so a word need be looked at once.

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
        self._lowers = bool(form["normalizer"]["lowercase"])
        model, added = form["model"], [token["content"] for token in form.get("added_tokens") or []]
        self._longest = longest = model["max_input_chars_per_word"]
        # Entries of letters and digits alone: the longest match, and so one token, wherever they are a word.
        self._parts = {word for word in model["vocab"] if _PARTS.fullmatch(word) and len(word) <= longest}
        if not all(map(str.isascii, added)):
            self._parts = set()  # normalised, they may be anything
        self._signs = {token[0] for token in added}
        self._signs |= {sign.swapcase() for sign in self._signs}

    def __call__(self, text: str) -> int:
        # Only these four: to the tokenizer other blanks are letters, or control characters that it drops.
        words = text.replace("\n", " ").replace("\t", " ").replace("\r", " ").split(" ")
        try:
            return sum(map(self._known.__getitem__, words))
        except KeyError:
            return self._sum(words)

    def _sum(self, words: Sequence[str]) -> int:
        """The same where some of the words are new; these are remembered."""
        known = self._known
        counts: dict[str, int] = {}
        odd = []
        for word in dict.fromkeys(words):
            if word in known:
                continue
            count = self._by_parts(word)
            if count is None:
                odd.append(word)
            else:
                counts[word] = count
        if odd:
            found = Counter(self._encode(odd, is_pretokenized=True, add_special_tokens=False).word_ids)
            counts.update((word, found[at]) for at, word in enumerate(odd))
        total = sum(counts[word] if word in counts else known[word] for word in words)
        if len(known) > _MOST_REMEMBERED:
            known.clear()
            known[""] = 0
        known.update((word, count) for word, count in counts.items() if len(word) <= _LONGEST_REMEMBERED)
        return total

    def _by_parts(self, word: str) -> int | None:
        """Of plain ASCII whose every run of letters and digits is an entry, or too long to be looked up: one
        for each run, and one for each sign."""
        if not (word.isascii() and word.isprintable()) or not self._signs.isdisjoint(word):
            return None
        runs = _PARTS.findall(word.lower() if self._lowers else word)
        if not self._parts.issuperset(run for run in runs if len(run) <= self._longest):
            return None
        return len(word) - sum(map(len, runs)) + len(runs)


_PROBE = (
    "Tokens, counted twice: naïve café 東京 it's [SEP]x ##ing\tan\u00adti\u200bdis-\nestablish\r\n"
    "0123456789 ﬁ Ǆ İstanbul \u0301a e\u0301 😀👩\u200d👩 \x00\x0b\x85\xa0\ufffd  _ " + "pneumono" * 20
)
_LONGEST_TEXT_REMEMBERED = 4096
_MOST_TEXTS_REMEMBERED = 4096
_PRINTED = "".join(map(chr, range(0x21, 0x7F)))
_PREPENDED = (  # to Unicode they are one character with the blank that follows
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
    """The quickest counter that counts as this tokenizer of transformers does.

    Word by word for WordPiece; else, and wherever a probe shows a difference, the tokenizer itself.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return Asking(tokenizer)
    from tokenizers import Tokenizer

    form = backend.to_str()
    own = Tokenizer.from_str(form)
    own.no_truncation()
    own.no_padding()
    told = json.loads(form)
    kinds: list[TokenCounter] = [ByWord(own, told)] if is_additive(told) else []
    kinds.append(ByText(own, has_a_token_for_each_word=has_a_token_for_each_word(own, told)))
    # The probe is a text of awkward characters; so are each of its words, and what is left of it at places.
    probes = [_PROBE, "", *_PROBE.split(" "), *(_PROBE[at:] for at in range(0, len(_PROBE), 7))]
    asking = Asking(tokenizer)
    expected = list(map(asking, probes))
    return next((counter for counter in kinds if list(map(counter, probes)) == expected), asking)


def is_additive(form: Mapping[str, Any]) -> bool:
    """True when a text has as many tokens as its words together, by the tokenizer's own description.

    Known of BERT's normalizer and pre-tokenizer with WordPiece: no step looks across a blank, so long as no
    added token holds one or takes those beside it.
    """
    kinds = [(form.get(part) or {}).get("type") for part in ("normalizer", "pre_tokenizer", "model")]
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"] and not any(
        token["lstrip"] or token["rstrip"] or token["single_word"] or len(token["content"].split()) != 1
        for token in form.get("added_tokens") or []
    )


def has_a_token_for_each_word(tokenizer: Any, form: Mapping[str, Any]) -> bool:
    """True when a text has at least as many tokens as words of printable ASCII between blanks.

    Known where the steps before the model neither drop nor join such words, and the model gives some token
    for each: byte pairs of GPT-2's kind without a normalizer, and Unigram with marks for blanks.
    """
    if any(token["content"].split() != [token["content"]] for token in form.get("added_tokens") or []):
        return False
    before, model = _steps(form.get("pre_tokenizer"), "pretokenizers"), form["model"]
    kinds = [step["type"] for step in before]
    if model["type"] == "BPE":
        is_cut = kinds == ["ByteLevel"] and before[0].get("use_regex", True)
        return is_cut and form.get("normalizer") is None and model["vocab"].keys() >= set(_PRINTED)
    if model["type"] != "Unigram" or kinds not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"]):
        return False
    return before[-1].get("split", True) and _keeps_words(tokenizer.normalizer, form.get("normalizer"))


def _keeps_words(normalizer: Any, form: Mapping[str, Any] | None) -> bool:
    """True of those that look at a character and the marks upon it, and leave ASCII as it is."""
    steps = _steps(form, "normalizers")
    if not all(step["type"] in _BY_CHARACTER or step in _JOINING_BLANKS for step in steps):
        return False
    return not steps or (
        all(normalizer.normalize_str(f"a{sign}a") == f"a{sign}a" for sign in f" {_PRINTED}")
        and all(normalizer.normalize_str(f"{sign} a").endswith((" a", "\u2581a")) for sign in _PREPENDED)
    )


def _steps(form: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    if form is None:
        return []
    return list(form[name]) if form["type"] == "Sequence" else [form]


class ByText:
    """Asks the tokenizer about whole texts, and remembers those it was asked about lately."""

    def __init__(self, tokenizer: Any, *, has_a_token_for_each_word: bool = False) -> None:
        self.has_a_token_for_each_word = has_a_token_for_each_word
        self._encode = tokenizer.encode
        self._known: dict[str, int] = {}

    def __call__(self, text: str, /) -> int:
        count = self._known.get(text)
        if count is None:
            count = len(self._encode(text, add_special_tokens=False))
            if len(text) <= _LONGEST_TEXT_REMEMBERED:
                if len(self._known) >= _MOST_TEXTS_REMEMBERED:
                    self._known.clear()
                self._known[text] = count
        return count


class Asking:
    """Asks the tokenizer as Docling does."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __call__(self, text: str, /) -> int:
        return len(self._tokenizer.tokenize(text))


# Counts that stop at a limit, for those who only ask whether a text fits.

_LETTERS_PER_TOKEN = 8  # more than most texts have, so that one look is mostly enough
_PARTS_REMEMBERED = 4  # whoever searches for a place to cut asks about many texts of the same start


def capped(counter: TokenCounter, most_tokens: int) -> TokenCounter:
    """Counts up to `most_tokens` as `counter` does, and gives some greater number for every longer text.

    Only a long text's start is looked at where its tokens are known to be some of the text's.
    """
    step = _LETTERS_PER_TOKEN * most_tokens
    if isinstance(counter, ByWord):
        return _in_parts(counter, step, most_tokens)
    if not (isinstance(counter, ByText) and counter.has_a_token_for_each_word):
        return counter
    words = _in_parts(plain_words, step, most_tokens)

    def by_words_first(text: str) -> int:
        """A text whose plain words are too many has too many tokens; any other is counted as a whole."""
        fewest = words(text) if len(text) > step else 0
        return fewest if fewest > most_tokens else counter(text)

    return by_words_first


def _in_parts(counter: TokenCounter, step: int, most_tokens: int) -> TokenCounter:
    """Adds up part after part until they are too many. Nothing may be counted across a blank."""
    remembering = lru_cache(maxsize=_PARTS_REMEMBERED)(counter)

    def count(text: str) -> int:
        start = total = 0
        while start < len(text) and total <= most_tokens:
            end = text.find(" ", start + step)
            end = end if end >= 0 else len(text)
            total += remembering(text[start:end])
            start = end
        return total

    return count


def plain_words(text: str, /) -> int:
    """How many words between blanks are of printable ASCII alone."""
    return sum(word != "" and word.isascii() and word.isprintable() for word in text.split(" "))
