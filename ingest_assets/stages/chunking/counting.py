"""Tokens of a text, exactly as its tokenizer counts them, without the special tokens around it."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from ingest_assets.stages.chunking.words import ByWord

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


class TokenCounter(Protocol):
    """Counts the tokens of one text."""

    def __call__(self, text: str, /) -> int: ...


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
    wanted = Asking(tokenizer)
    return next((counter for counter in kinds if _agree(counter, wanted)), wanted)


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


def _agree(counter: TokenCounter, wanted: TokenCounter) -> bool:
    """On a text of awkward characters, on each of its words, and on each of its halves."""
    texts = [_PROBE, "", *_PROBE.split(" "), *(_PROBE[at:] for at in range(0, len(_PROBE), 7))]
    return all(counter(text) == wanted(text) for text in texts)
