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
    wanted = Asking(tokenizer)
    return next((counter for counter in [*kinds, ByText(own)] if _agree(counter, wanted)), wanted)


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


class ByText:
    """Asks the tokenizer about whole texts, and remembers those it was asked about lately."""

    def __init__(self, tokenizer: Any) -> None:
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
