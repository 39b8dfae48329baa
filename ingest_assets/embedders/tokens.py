"""Texts become token ids as the model wants them: prefixed, and cut or refused at its limit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingest_assets.embedders.counting import count
from ingest_assets.embedders.errors import TextTooLong, TextWithoutTokens, TokenUnknown
from ingest_assets.embedders.recipe import Recipe, Usage
from ingest_assets.model.embedding import Kind


def read_tokenizer(recipe: Recipe) -> Any:
    """The model's tokenizer by its file alone."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(Path(recipe.path) / "tokenizer.json"))


def require_tokens(batch: Sequence[Sequence[int]]) -> None:
    """A network reads at least one token of each text."""
    for index, ids in enumerate(batch):
        if not ids:
            raise TextWithoutTokens(
                "The model's tokenizer makes no token of a text, so there is nothing to embed; remove it, or "
                "take a model that knows its characters.",
                detail={"index": index},
            )


def require_known(batch: Sequence[Sequence[int]], words: int | None) -> None:
    """Every token is one of the network's `words`; none = nobody knows how many those are."""
    for index, ids in enumerate(batch):
        if words is not None and ids and max(ids) >= words:
            raise TokenUnknown(
                f"The tokenizer makes token {max(ids)}, and the model knows {words} of them, counted from 0: "
                "they are not of one model; give a folder in which they are.",
                detail={"index": index},
            )


class Encoder:
    """Token ids of texts. `tokenizer` is one of the library `tokenizers`, and this encoder's own."""

    def __init__(self, tokenizer: Any, recipe: Recipe, usage: Usage) -> None:
        self._tokenizer = tokenizer
        self._usage = usage
        self._words = recipe.words
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=usage.max_tokens, direction=recipe.truncation_side)
        if recipe.lower_case:
            _lower_first(tokenizer)

    def encode(self, texts: Sequence[str], kind: Kind) -> list[list[int]]:
        """Ids of each text, special tokens included; counts tokens and texts that were cut."""
        prefix = self._usage.query_prefix if kind == "query" else self._usage.passage_prefix
        encodings = self._tokenizer.encode_batch_fast([prefix + text for text in texts])
        cut = [index for index, encoding in enumerate(encodings) if encoding.overflowing]
        if cut and self._usage.refuses_long:
            raise self._refusal(texts[cut[0]], cut[0])
        ids = [encoding.ids for encoding in encodings]
        require_tokens(ids)
        require_known(ids, self._words)
        count("tokens", sum(map(len, ids)))
        if cut:
            count("texts_cut", len(cut))
        return ids

    def _refusal(self, text: str, index: int) -> TextTooLong:
        return TextTooLong(
            f"A text of {len(text)} characters is longer than the {self._usage.max_tokens} tokens the model "
            'reads; make chunks shorter, or set embeddings.dense.truncation = "cut".',
            detail={"index": index, "max_tokens": self._usage.max_tokens},
        )


def _lower_first(tokenizer: Any) -> None:
    from tokenizers.normalizers import Lowercase, Sequence

    own = [tokenizer.normalizer] if tokenizer.normalizer else []
    tokenizer.normalizer = Sequence([Lowercase(), *own])
