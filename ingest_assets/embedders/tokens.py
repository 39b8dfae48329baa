"""Texts become token ids as the model wants them: prefixed, and cut or refused at its limit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingest_assets.embedders.counting import count
from ingest_assets.embedders.errors import TextTooLong
from ingest_assets.embedders.recipe import Recipe, Usage
from ingest_assets.model.embedding import Kind


def read_tokenizer(recipe: Recipe) -> Any:
    """The model's tokenizer by its file alone."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(Path(recipe.path) / "tokenizer.json"))


class Encoder:
    """Token ids of texts. `tokenizer` is one of the library `tokenizers`, and this encoder's own."""

    def __init__(self, tokenizer: Any, recipe: Recipe, usage: Usage) -> None:
        self._tokenizer = tokenizer
        self._usage = usage
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
