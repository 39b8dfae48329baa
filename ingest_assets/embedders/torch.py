"""Dense vectors with PyTorch: models of transformers, and the library sentence-transformers."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import installed_versions
from ingest_assets.embedders.batcher import count
from ingest_assets.embedders.errors import TextTooLong, TextWithoutTokens, TokenUnknown
from ingest_assets.embedders.model_files import (
    cached_by_files,
    content_hash_of,
    find_folder,
    load_auto_tokenizer,
    load_complete_model,
    name_of,
    quiet,
    require_no_code,
    without_warnings,
)
from ingest_assets.embedders.model_layout import (
    SETTING,
    ModelLayout,
    Usage,
    facts_of,
    has_transformer,
    module_outputs,
    read_layout,
    require_supported,
    usage_of,
)
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions, Device, TextKind

# Pooling: one vector from the vectors of a text's tokens, as in sentence-transformers.


def pool_batch(hidden: np.ndarray, lengths: list[int], modes: tuple[str, ...], dim: int) -> list[np.ndarray]:
    """Return a vector per text from its tokens (texts, tokens, width), without padding; modes are joined.

    Texts are pooled one by one, so that other texts and padding change no bit. Vectors are cut to `dim`.
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


# Texts become token ids: prefixed, and cut or rejected at the model's limit.


def read_tokenizer(layout: ModelLayout) -> Any:
    """Load the model's `tokenizer.json`, without transformers."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(Path(layout.path) / "tokenizer.json"))


def require_tokens(batch: Sequence[Sequence[int]]) -> None:
    """Raise for the first text without tokens, which the network cannot read."""
    for index, ids in enumerate(batch):
        if not ids:
            raise TextWithoutTokens(
                "The model's tokenizer finds no token in a text, so there is nothing to embed. Remove "
                "the document, or use a model that knows its characters.",
                detail={"index": index},
            )


def require_known_tokens(batch: Sequence[Sequence[int]], vocab_size: int | None) -> None:
    """Raise for the first token outside the network's vocabulary; `None` = unknown size, not checked."""
    for index, ids in enumerate(batch):
        if vocab_size is not None and ids and max(ids) >= vocab_size:
            raise TokenUnknown(
                f"The tokenizer produces token {max(ids)}, but the model knows only 0 to {vocab_size - 1}. "
                "Set a folder in which both belong to the same model.",
                detail={"index": index},
            )


class Encoder:
    """Converts texts to token ids. `tokenizer` is of the library `tokenizers`; it is modified."""

    def __init__(self, tokenizer: Any, layout: ModelLayout, usage: Usage) -> None:
        self._tokenizer = tokenizer
        self._usage = usage
        self._vocab_size = layout.vocab_size
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=usage.max_tokens, direction=layout.truncation_side)
        if layout.lower_case:
            from tokenizers.normalizers import Lowercase
            from tokenizers.normalizers import Sequence as Normalizers

            others = [tokenizer.normalizer] if tokenizer.normalizer else []
            tokenizer.normalizer = Normalizers([Lowercase(), *others])

    def encode(self, texts: Sequence[str], kind: TextKind) -> list[list[int]]:
        """Return each text's ids, with special tokens; count tokens and cut texts."""
        prefix = self._usage.query_prefix if kind == "query" else self._usage.passage_prefix
        encodings = self._tokenizer.encode_batch_fast([prefix + text for text in texts])
        cut = [index for index, encoding in enumerate(encodings) if encoding.overflowing]
        if cut and self._usage.refuses_long:
            limit = self._usage.max_tokens
            raise TextTooLong(
                f"A text of {len(texts[cut[0]])} characters exceeds the model's limit of {limit} tokens. "
                'Make chunks shorter, or set embeddings.dense.truncation = "cut".',
                detail={"index": cut[0], "max_tokens": limit},
            )
        ids = [encoding.ids for encoding in encodings]
        require_tokens(ids)
        require_known_tokens(ids, self._vocab_size)
        count("tokens", sum(map(len, ids)))
        if cut:
            count("texts_cut", len(cut))
        return ids


# The device on which a model runs.


def device_for(device: Device, setting: str) -> str:
    """Return the device, for "auto" the best available; `ConfigError` if it is not available."""
    import torch

    devices = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return next(name for name, is_available in devices.items() if is_available)
    if not devices[device]:
        raise ConfigError(f'{setting}: {device} is not available on this machine. Set it to "auto" or "cpu".')
    return device


def has_cuda() -> bool:
    """True if this machine has a CUDA GPU."""
    import torch

    return bool(torch.cuda.is_available())


BATCH_SIZE_ON_GPU = 64
_USUAL_TOKENS = 256


class LocalFactory:
    """Models of any architecture in transformers."""

    def describe(self, options: DenseOptions) -> DenseFacts:
        layout = read_layout(options.model)
        usage = usage_of(layout, options)
        require_supported(layout, usage)
        return facts_of("local", layout, usage, installed_versions("torch", "transformers", "tokenizers"))

    def open(self, options: DenseOptions) -> "TorchEmbedder":
        self.describe(options)
        return TorchEmbedder(options)


class TorchEmbedder:
    """Pooled token vectors, not yet scaled to unit length.

    Torch does not guarantee equal bits in different batches, and the cache decides which texts are embedded
    together. So on a CPU each text is a batch of its own. A GPU would be mostly idle then: it gets batches of
    one document, sorted by length, and its vectors are equal within rounding.
    """

    def __init__(self, options: DenseOptions) -> None:
        layout = read_layout(options.model)
        self._torch, self._model, tokenizer = load_model(layout.path, options.device)
        self._usage = usage_of(layout, options)
        self._encoder = Encoder(tokenizer, layout, self._usage)
        self._pad_id = layout.pad_id
        is_on_cpu = self._model.device.type == "cpu"
        self._batch_size = 1 if is_on_cpu else BATCH_SIZE_ON_GPU
        self._batch_tokens = options.batch_tokens or self._batch_size * _USUAL_TOKENS
        self._lock = threading.Lock()
        self.model_id = layout.model_id
        self.dim = self._usage.dim

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> np.ndarray:
        """Return one row per text, in order."""
        ids = self._encoder.encode(texts, kind)
        order = sorted(range(len(ids)), key=lambda index: (len(ids[index]), texts[index]))
        vectors = np.empty((len(ids), self.dim), dtype=np.float32)
        while order:
            room = max(1, min(self._batch_size, self._batch_tokens // len(ids[order[-1]])))
            order, chosen = order[:-room], order[-room:]
            vectors[chosen] = self._forward([ids[index] for index in chosen])
        return vectors

    def close(self) -> None:
        """Do nothing: memory is freed with the last reference to the model."""

    def _forward(self, batch: list[list[int]]) -> np.ndarray:
        ids, mask = padded(batch, self._pad_id)
        with self._lock, self._torch.inference_mode():
            inputs = {
                "input_ids": self._torch.from_numpy(ids).to(self._model.device),
                "attention_mask": self._torch.from_numpy(mask).to(self._model.device),
            }
            hidden = self._model(**inputs).last_hidden_state.float().cpu().numpy()
        return np.stack(pool_batch(hidden, [len(tokens) for tokens in batch], self._usage.pooling, self.dim))


def padded(batch: Sequence[Sequence[int]], pad_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and attention mask, padded on the right to the longest text."""
    longest = max(map(len, batch))
    ids = np.full((len(batch), longest), pad_id, dtype=np.int64)
    mask = np.zeros((len(batch), longest), dtype=np.int64)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    return ids, mask


def load_model(path: str, device: Device, attention: str | None = None) -> tuple[Any, Any, Any]:
    """Load a model offline; return torch, the model on its device, and its tokenizer."""
    import torch
    from transformers import AutoModel

    name = device_for(device, "embeddings.dense.device")
    tokenizer = load_auto_tokenizer(path)
    dtype = torch.float32 if name == "cpu" else "auto"
    model = load_complete_model(AutoModel, path, SETTING, dtype=dtype, attn_implementation=attention)
    return torch, model.eval().to(name), tokenizer.backend_tokenizer


# Dense vectors from the library sentence-transformers, with all its modules.


LIBRARIES = ("sentence-transformers", "torch", "transformers", "tokenizers")
_NO_LIMIT = 1_000_000  # static word vectors have no token limit


class SentenceTransformersFactory:
    """Any model of that library; if its files do not contain the vector length, the model is loaded."""

    def describe(self, options: DenseOptions) -> DenseFacts:
        if find_spec("sentence_transformers") is None:
            raise ConfigError(
                "embeddings.dense.provider: sentence-transformers is not installed. "
                "Run `pip install 'ingest-assets[sentence-transformers]'`."
            )
        if options.pooling != "auto":
            raise ConfigError(
                "embeddings.dense.pooling: sentence-transformers pools by the model's files. "
                'Set pooling = "auto", or another provider.'
            )
        layout = _read_sentence_model(options.model)
        return facts_of(
            "sentence-transformers", layout, usage_of(layout, options), installed_versions(*LIBRARIES)
        )

    def open(self, options: DenseOptions) -> "SentenceTransformersEmbedder":
        self.describe(options)
        return SentenceTransformersEmbedder(options)


class SentenceTransformersEmbedder:
    """Vectors of the library; texts run one by one on a CPU, and together with their document on a GPU."""

    def __init__(self, options: DenseOptions) -> None:
        layout = _read_sentence_model(options.model)
        self._usage = usage_of(layout, options)
        self._model = _load(options.model, None if options.device == "auto" else options.device)
        for network in filter(None, (getattr(module, "auto_model", None) for module in self._model)):
            # Load again, because the library does not report missing weights.
            load_complete_model(type(network), network.name_or_path, SETTING)
        if layout.max_tokens < _NO_LIMIT:
            self._model.max_seq_length = self._usage.max_tokens
        self._batch_size = 1 if self._model.device.type == "cpu" else BATCH_SIZE_ON_GPU
        self._vocab_size = layout.vocab_size
        self._lock = threading.Lock()
        self.model_id, self.dim = layout.model_id, self._usage.dim

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> np.ndarray:
        """Return one row per text, in order."""
        prefix = self._usage.query_prefix if kind == "query" else self._usage.passage_prefix
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        with self._lock:
            self._check_lengths([prefix + text for text in texts])
            vectors = self._model.encode(
                list(texts),
                prompt=prefix,
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return np.asarray(vectors[:, : self.dim], dtype=np.float32)

    def close(self) -> None:
        """Do nothing: memory is freed with the last reference to the model."""

    def _check_lengths(self, texts: list[str]) -> None:
        limit = self._usage.max_tokens
        if limit >= _NO_LIMIT:
            return
        tokens = without_warnings(self._model.tokenizer)(texts, truncation=False)["input_ids"]
        require_tokens(tokens)
        require_known_tokens(tokens, self._vocab_size)
        lengths = [len(ids) for ids in tokens]
        long = [index for index, length in enumerate(lengths) if length > limit]
        if long and self._usage.refuses_long:
            raise TextTooLong(
                f"A text of {lengths[long[0]]} tokens exceeds the model's limit of {limit} tokens. Make "
                'chunks shorter, or set embeddings.dense.truncation = "cut".',
                detail={"index": long[0], "max_tokens": limit},
            )
        count("tokens", sum(min(length, limit) for length in lengths))
        if long:
            count("texts_cut", len(long))


@cached_by_files(SETTING)
def _read_sentence_model(model: str) -> ModelLayout:
    """Read the layout from the files of a transformer; for other models, from the loaded model."""
    folder = find_folder(model, SETTING)
    require_no_code(folder, SETTING)
    has_config = (folder / "config.json").is_file() or (folder / "0_Transformer").is_dir()
    if has_config and has_transformer(folder):
        layout = read_layout(model)
        # The last module that changes the width decides.
        width = [layout.width * len(layout.pooling), *module_outputs(folder)][-1]
        return replace(layout, width=width, pooling=layout.pooling[:1])
    loaded = _load(model, "cpu")
    limit = loaded.max_seq_length
    return ModelLayout(
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
