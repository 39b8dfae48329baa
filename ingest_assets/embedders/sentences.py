"""Dense vectors from whatever the library sentence-transformers loads, further modules included."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ingest_assets.embedders.counting import count
from ingest_assets.embedders.errors import TextTooLong
from ingest_assets.embedders.facts import facts_of
from ingest_assets.embedders.loading import load_whole, quiet, without_warnings
from ingest_assets.embedders.models import content_hash_of, find_folder, name_of, while_unchanged
from ingest_assets.embedders.own_code import require_no_code
from ingest_assets.embedders.recipe import (
    SETTING,
    Recipe,
    has_transformer,
    module_outputs,
    read_recipe,
    usage_of,
)
from ingest_assets.embedders.tokens import require_known, require_tokens
from ingest_assets.model.embedding import DenseFacts, DenseOptions, Kind
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.identity import installed_versions

LIBRARIES = ("sentence-transformers", "torch", "transformers", "tokenizers")
BATCH_SIZE_ON_GPU = 64
_NO_LIMIT = 1_000_000  # of static word vectors


class SentencesKind:
    """Any folder or hub name of that library; where its files do not tell the shape, the model is loaded."""

    def describe(self, options: DenseOptions) -> DenseFacts:
        if find_spec("sentence_transformers") is None:
            raise ConfigError(
                "embeddings.dense.provider: sentence-transformers is not installed; "
                "run `pip install 'ingest-assets[sentence-transformers]'`."
            )
        if options.pooling != "auto":
            raise ConfigError(
                "embeddings.dense.pooling: sentence-transformers pools by the model's files; "
                'set pooling = "auto", or another provider.'
            )
        recipe = _recipe(options.model)
        return facts_of(
            "sentence-transformers", recipe, usage_of(recipe, options), installed_versions(*LIBRARIES)
        )

    def open(self, options: DenseOptions) -> "SentencesEmbedder":
        self.describe(options)
        return SentencesEmbedder(options)


class SentencesEmbedder:
    """The library's own vectors: of each text by itself on a CPU, of a document's texts together on a GPU."""

    def __init__(self, options: DenseOptions) -> None:
        recipe = _recipe(options.model)
        self._usage = usage_of(recipe, options)
        self._model = _load(options.model, None if options.device == "auto" else options.device)
        _require_whole(self._model)
        if recipe.max_tokens < _NO_LIMIT:
            self._model.max_seq_length = self._usage.max_tokens
        self._batch_size = 1 if self._model.device.type == "cpu" else BATCH_SIZE_ON_GPU
        self._words = recipe.words
        self._lock = threading.Lock()
        self.model_id, self.dim = recipe.model_id, self._usage.dim

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> np.ndarray:
        """One row per text, in their order."""
        prefix = self._usage.query_prefix if kind == "query" else self._usage.passage_prefix
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        with self._lock:
            self._look_at_lengths([prefix + text for text in texts])
            vectors = self._model.encode(
                list(texts),
                prompt=prefix,
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return np.asarray(vectors[:, : self.dim], dtype=np.float32)

    def close(self) -> None:
        """Memory goes when nobody holds the model any more."""

    def _look_at_lengths(self, texts: list[str]) -> None:
        limit = self._usage.max_tokens
        if limit >= _NO_LIMIT:
            return
        tokens = without_warnings(self._model.tokenizer)(texts, truncation=False)["input_ids"]
        require_tokens(tokens)
        require_known(tokens, self._words)
        lengths = [len(ids) for ids in tokens]
        long = [index for index, length in enumerate(lengths) if length > limit]
        if long and self._usage.refuses_long:
            raise TextTooLong(
                f"A text of {lengths[long[0]]} tokens is longer than the {limit} the model reads; make "
                'chunks shorter, or set embeddings.dense.truncation = "cut".',
                detail={"index": long[0], "max_tokens": limit},
            )
        count("tokens", sum(min(length, limit) for length in lengths))
        if long:
            count("texts_cut", len(long))


@while_unchanged(SETTING)
def _recipe(model: str) -> Recipe:
    """By the files where they are those of a transformer; else as the loaded model says."""
    folder = find_folder(model, SETTING)
    require_no_code(folder, SETTING)
    is_told = (folder / "config.json").is_file() or (folder / "0_Transformer").is_dir()
    if is_told and has_transformer(folder):
        recipe = read_recipe(model)
        return replace(recipe, width=_width(recipe, folder), pooling=recipe.pooling[:1])
    loaded = _load(model, "cpu")
    limit = loaded.max_seq_length
    return Recipe(
        source=model,
        name=name_of(folder),
        path=str(next((p.parent for p in sorted(folder.rglob("tokenizer.json"))), folder)),
        content_hash=content_hash_of(folder, SETTING),
        config={},
        width=int(loaded.get_embedding_dimension()),
        max_tokens=limit if isinstance(limit, int) and limit < _NO_LIMIT else _NO_LIMIT,
        pooling=("mean",),
        pools_prompt=True,
        query_prefix=loaded.prompts.get("query", ""),
        passage_prefix=loaded.prompts.get("document", ""),
        lower_case=False,
        normalizes=False,
        other_modules=(),
    )


def _width(recipe: Recipe, folder: Path) -> int:
    """What the last module that changes the width gives."""
    outputs = module_outputs(folder)
    return outputs[-1] if outputs else recipe.width * len(recipe.pooling)


def _require_whole(model: Any) -> None:
    """Read networks once more, as the library keeps to itself what it did not find."""
    for module in model:
        network = getattr(module, "auto_model", None)
        if network is not None:
            load_whole(type(network), network.name_or_path, SETTING)


def _load(model: str, device: str | None) -> Any:
    from sentence_transformers import SentenceTransformer

    folder = find_folder(model, SETTING)
    try:
        with quiet():
            return SentenceTransformer(
                str(folder), device=device, local_files_only=True, trust_remote_code=False
            )
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigError(
            f"{SETTING}: sentence-transformers cannot load {folder} "
            f"({str(error).splitlines()[0] if str(error) else type(error).__name__})."
        ) from error
