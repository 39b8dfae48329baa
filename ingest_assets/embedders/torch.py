"""Embedding with PyTorch: the packaged model and sentence-transformers."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import installed_versions
from ingest_assets.embedders.batching import count
from ingest_assets.embedders.errors import TextTooLong, TextWithoutTokens, TokenUnknown
from ingest_assets.embedders.model_files import (
    content_hash_of,
    find_folder,
    load_whole,
    load_words,
    name_of,
    quiet,
    require_no_code,
    while_unchanged,
    without_warnings,
)
from ingest_assets.embedders.model_recipe import (
    SETTING,
    Recipe,
    Usage,
    facts_of,
    has_transformer,
    module_outputs,
    read_recipe,
    require_own_modules,
    usage_of,
)
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions, Device, Kind

# How the vectors of a text's tokens become one, as sentence-transformers does it.


def pool_batch(hidden: np.ndarray, lengths: list[int], modes: tuple[str, ...], dim: int) -> list[np.ndarray]:
    """A vector per text from its own tokens (texts, tokens, width), without padding; modes are joined.

    A text at a time, so that no neighbour and no padding can change a bit. Each is cut to `dim` numbers.
    """
    texts = (rows[:length] for rows, length in zip(hidden, lengths, strict=True))
    return [np.concatenate([_pooled(tokens, mode) for mode in modes])[:dim] for tokens in texts]


def _pooled(tokens: np.ndarray, mode: str) -> np.ndarray:
    match mode:
        case "cls":
            return tokens[0]
        case "last":
            return tokens[-1]
        case "max":
            return np.asarray(tokens.max(axis=0))
        case "mean":
            return tokens.sum(axis=0) / np.float32(len(tokens))
        case "mean_sqrt_length":
            return tokens.sum(axis=0) / np.sqrt(np.float32(len(tokens)))
        case "weighted_mean":  # the first token counts once, the second twice, and so on
            weights = np.arange(1, len(tokens) + 1, dtype=np.float32)
            return np.asarray((tokens * weights[:, None]).sum(axis=0) / weights.sum())
    raise KeyError(mode)


# Texts become token ids as the model wants them: prefixed, and cut or refused at its limit.


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
            from tokenizers.normalizers import Lowercase
            from tokenizers.normalizers import Sequence as Normalizers

            own = [tokenizer.normalizer] if tokenizer.normalizer else []
            tokenizer.normalizer = Normalizers([Lowercase(), *own])

    def encode(self, texts: Sequence[str], kind: Kind) -> list[list[int]]:
        """Ids of each text, special tokens included; counts tokens and texts that were cut."""
        prefix = self._usage.query_prefix if kind == "query" else self._usage.passage_prefix
        encodings = self._tokenizer.encode_batch_fast([prefix + text for text in texts])
        cut = [index for index, encoding in enumerate(encodings) if encoding.overflowing]
        if cut and self._usage.refuses_long:
            limit = self._usage.max_tokens
            raise TextTooLong(
                f"A text of {len(texts[cut[0]])} characters is longer than the {limit} tokens the model "
                'reads; make chunks shorter, or set embeddings.dense.truncation = "cut".',
                detail={"index": cut[0], "max_tokens": limit},
            )
        ids = [encoding.ids for encoding in encodings]
        require_tokens(ids)
        require_known(ids, self._words)
        count("tokens", sum(map(len, ids)))
        if cut:
            count("texts_cut", len(cut))
        return ids


# Where a model runs: what the settings want, and what is here.


def device_for(wanted: Device, setting: str) -> str:
    """The one wanted, or the best there is; `ConfigError` naming the setting when it is not here."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(name for name, is_there in there.items() if is_there)
    if not there[wanted]:
        raise ConfigError(f'{setting}: there is no {wanted} here; set it to "auto" or "cpu".')
    return wanted


def has_cuda() -> bool:
    """True when models run on a GPU here."""
    import torch

    return bool(torch.cuda.is_available())


BATCH_SIZE_ON_GPU = 64
_USUAL_TOKENS = 256


class LocalKind:
    """Any architecture that transformers knows."""

    def describe(self, options: DenseOptions) -> DenseFacts:
        recipe = read_recipe(options.model)
        usage = usage_of(recipe, options)
        require_own_modules(recipe, usage)
        return facts_of("local", recipe, usage, installed_versions("torch", "transformers", "tokenizers"))

    def open(self, options: DenseOptions) -> "TorchEmbedder":
        self.describe(options)
        return TorchEmbedder(options)


class TorchEmbedder:
    """Pooled token vectors, not yet scaled to unit length.

    Torch promises no equal bits for other batches, and which texts of a document are in the cache already is
    chance: on a CPU each text is a batch by itself, so that its vector depends on nothing else. A GPU would
    stand idle so: it gets batches of one document, sorted by length; its vectors are equal within rounding.
    """

    def __init__(self, options: DenseOptions) -> None:
        recipe = read_recipe(options.model)
        self._torch, self._model, tokenizer = load_model(recipe.path, options.device)
        self._usage = usage_of(recipe, options)
        self._encoder = Encoder(tokenizer, recipe, self._usage)
        self._pad_id = recipe.pad_id
        is_on_cpu = self._model.device.type == "cpu"
        self._batch_size = 1 if is_on_cpu else BATCH_SIZE_ON_GPU
        self._batch_tokens = options.batch_tokens or self._batch_size * _USUAL_TOKENS
        self._lock = threading.Lock()
        self.model_id = recipe.model_id
        self.dim = self._usage.dim

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> np.ndarray:
        """One row per text, in their order."""
        ids = self._encoder.encode(texts, kind)
        order = sorted(range(len(ids)), key=lambda index: (len(ids[index]), texts[index]))
        vectors = np.empty((len(ids), self.dim), dtype=np.float32)
        while order:
            room = max(1, min(self._batch_size, self._batch_tokens // len(ids[order[-1]])))
            order, chosen = order[:-room], order[-room:]
            vectors[chosen] = self._forward([ids[index] for index in chosen])
        return vectors

    def close(self) -> None:
        """Memory goes when nobody holds the model any more."""

    def _forward(self, batch: list[list[int]]) -> np.ndarray:
        ids, mask = padded(batch, self._pad_id)
        with self._lock, self._torch.inference_mode():
            inputs = {
                "input_ids": self._torch.from_numpy(ids).to(self._model.device),
                "attention_mask": self._torch.from_numpy(mask).to(self._model.device),
            }
            hidden = self._model(**inputs).last_hidden_state.float().cpu().numpy()
        return np.stack(pool_batch(hidden, [len(each) for each in batch], self._usage.pooling, self.dim))


def padded(batch: Sequence[Sequence[int]], pad_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids and attention mask, padded on the right to the longest."""
    longest = max(map(len, batch))
    ids = np.full((len(batch), longest), pad_id, dtype=np.int64)
    mask = np.zeros((len(batch), longest), dtype=np.int64)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    return ids, mask


def load_model(path: str, device: Device, attention: str | None = None) -> tuple[Any, Any, Any]:
    """Torch, the model on its device, and its tokenizer, offline."""
    import torch
    from transformers import AutoModel

    place = device_for(device, "embeddings.dense.device")
    tokenizer = load_words(path)
    dtype = torch.float32 if place == "cpu" else "auto"
    model = load_whole(AutoModel, path, SETTING, dtype=dtype, attn_implementation=attention)
    return torch, model.eval().to(place), tokenizer.backend_tokenizer


# Dense vectors from whatever the library sentence-transformers loads, further modules included.


LIBRARIES = ("sentence-transformers", "torch", "transformers", "tokenizers")
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
        for network in filter(None, (getattr(module, "auto_model", None) for module in self._model)):
            # Read once more, as the library keeps to itself which weights it did not find.
            load_whole(type(network), network.name_or_path, SETTING)
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
        # The last module that changes the width decides.
        width = [recipe.width * len(recipe.pooling), *module_outputs(folder)][-1]
        return replace(recipe, width=width, pooling=recipe.pooling[:1])
    loaded = _load(model, "cpu")
    limit = loaded.max_seq_length
    return Recipe(
        source=model,
        name=name_of(model, folder),
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
