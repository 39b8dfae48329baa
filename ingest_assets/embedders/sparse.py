"""Sparse vectors from masked-language models of the SPLADE kind: weights of vocabulary entries.

The weight of an entry is the maximum of log(1 + relu(logit)) over all positions of the text, unless the
model's files specify another pooling.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_files import (
    cached_by_files,
    content_hash_of,
    find_folder,
    load_auto_tokenizer,
    load_complete_model,
    module_kind,
    name_of,
    number_in,
    positions_of,
    read_modules,
    read_object,
    require_no_code,
)
from ingest_assets.embedders.providers import OpenModels
from ingest_assets.embedders.torch import device_for, require_known_tokens
from ingest_assets.settings.embeddings import SparseOptions

# How to compute weights from logits, by the model's files in the layout of sentence-transformers.


_STRATEGY, _ACTIVATION = "pooling_strategy", "activation_function"
_SUPPORTED = {_STRATEGY: ("max", "sum"), _ACTIVATION: ("relu", "log1p_relu")}
_CHANGES_NO_WEIGHT = {"embedding_dimension", "word_embedding_dimension", "chunk_size"}
_KINDS = (["MLMTransformer", "SpladePooling"], ["Transformer", "SpladePooling"])
_TASK = "fill-mask"


@dataclass(frozen=True, slots=True)
class SpladePooling:
    """How weights are computed from logits; the defaults are those of the SPLADE paper."""

    is_sum: bool = False
    takes_log_twice: bool = False

    def weights(self, logits: Any, is_padding: Any) -> Any:
        """Return weights (texts, entries) of logits (texts, positions, entries); overwrites the logits,
        since a copy would double the memory."""
        if self.is_sum:
            return self._activated(logits).masked_fill_(is_padding, 0).sum(dim=1)
        # The activation is monotonic, so the maximum can be taken first.
        return self._activated(logits.masked_fill_(is_padding, float("-inf")).amax(dim=1))

    def _activated(self, logits: Any) -> Any:
        once = logits.relu_().log1p_()
        return once.log1p_() if self.takes_log_twice else once


def read_splade(folder: Path, setting: str) -> tuple[Path, SpladePooling]:
    """Return a model's network folder and its pooling; `ConfigError` if they are not supported."""
    modules = read_modules(folder, setting)
    if not modules and not (folder / "modules.json").is_file():
        return folder, SpladePooling()
    kinds = [module_kind(module) for module in modules]
    if kinds not in _KINDS:
        raise ConfigError(
            f"{setting}: {folder / 'modules.json'} lists {', '.join(kinds) or 'nothing'}, which is not "
            f"supported. Use a model of {' and '.join(_KINDS[0])}."
        )
    network, pooling = modules
    path = folder / network["path"]
    if kinds[0] == "Transformer":
        # Its output is hidden states, unless its file asks for logits.
        file = path / "sentence_bert_config.json"
        task = read_object(file, setting).get("transformer_task")
        if task != _TASK:
            raise ConfigError(
                f"{setting}: {file} has transformer_task {task!r}; only {_TASK!r} is supported."
            )
    return path, _pooling(folder / pooling["path"] / "config.json", setting)


def _pooling(file: Path, setting: str) -> SpladePooling:
    config = read_object(file, setting)
    for name in sorted(config.keys() - _CHANGES_NO_WEIGHT):
        if config[name] not in _SUPPORTED.get(name, ()):
            supported = "; ".join(f"{key} {' or '.join(values)}" for key, values in _SUPPORTED.items())
            raise ConfigError(f"{setting}: {file} has {name} {config[name]!r}; supported: {supported}.")
    return SpladePooling(
        is_sum=config.get(_STRATEGY) == "sum", takes_log_twice=config.get(_ACTIVATION) == "log1p_relu"
    )


_SETTING = "embeddings.sparse.model"
# Logits of one forward pass, one for each token and entry: 512 MiB.
_MAX_LOGITS = 2**27

SparseVector = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class SparseModel:
    """A masked-language model on disk, identified by its content."""

    name: str
    path: str
    dim: int
    max_tokens: int
    content_hash: str
    pooling: SpladePooling

    @property
    def model_id(self) -> str:
        return f"{self.name}@{self.content_hash[:12]}"


@cached_by_files(_SETTING)
def read_sparse_model(name: str) -> SparseModel:
    """Read the files of a folder or hub name, without opening the model."""
    folder = find_folder(name, _SETTING)
    require_no_code(folder, _SETTING)
    path, pooling = read_splade(folder, _SETTING)
    config = read_object(path / "config.json", _SETTING)
    kinds = config.get("architectures") or []
    if not any(str(kind).endswith("ForMaskedLM") for kind in kinds):
        raise ConfigError(
            f"{_SETTING}: {path} is not a masked-language model (architectures in its config.json: "
            f"{', '.join(map(str, kinds)) or 'none'}). Use a SPLADE model."
        )
    if not any((path / file).is_file() for file in ("tokenizer.json", "vocab.txt")):
        raise ConfigError(f"{_SETTING}: {path} has no tokenizer.json. Set a complete model folder.")
    if not any(path.glob("*.safetensors")) and not any(path.glob("pytorch_model*.bin")):
        raise ConfigError(f"{_SETTING}: {path} has no weights (*.safetensors). Set a complete model folder.")
    return SparseModel(
        name=name_of(name, folder),
        path=str(path),
        dim=number_in(config, ("vocab_size",), path, _SETTING),
        max_tokens=positions_of(config, path, _SETTING),
        content_hash=content_hash_of(folder, _SETTING),
        pooling=pooling,
    )


def open_sparse(options: SparseOptions) -> "SparseEmbedder":
    """Return the process's embedder for these options; threads share it."""
    key = (options, read_sparse_model(options.model).content_hash)
    label = f"embeddings.sparse: {options.model} cannot be opened"
    return _OPEN_MODELS.get(key, label, lambda: SparseEmbedder(options))


class SparseEmbedder:
    """An open model. Documents do not share batches, so that a document's vectors do not depend on others
    or on the order of work."""

    def __init__(self, options: SparseOptions) -> None:
        import torch
        from transformers import AutoModelForMaskedLM

        self.model = read_sparse_model(options.model)
        self._torch, self._options = torch, options
        self._device = device_for(options.device, "embeddings.sparse.device")
        self._tokenizer = load_auto_tokenizer(self.model.path)
        loaded = load_complete_model(AutoModelForMaskedLM, self.model.path, _SETTING)
        self._network = loaded.float().eval().to(self._device)
        self._max_tokens = min(options.max_tokens or self.model.max_tokens, self.model.max_tokens)
        self._batch_tokens = within_memory(options.batch_tokens, self.model.dim)
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return each text's heaviest entries, by index: uint32 indices and float32 weights.

        Text beyond the model's limit is cut. A text without positive weights has no entries.
        """
        vectors: list[SparseVector] = [_EMPTY] * len(texts)
        if not texts:
            return vectors
        with self._lock:
            tokens = self._tokenizer(list(texts), truncation=True, max_length=self._max_tokens)["input_ids"]
            require_known_tokens(tokens, self.model.dim)
            for batch in _batches([len(ids) for ids in tokens], self._batch_tokens):
                weights = self._weights([tokens[index] for index in batch])
                for index, row in zip(batch, weights, strict=True):
                    vectors[index] = heaviest(row, self._options.top_k, self._options.min_weight)
        return vectors

    def _weights(self, tokens: list[list[int]]) -> np.ndarray:
        torch = self._torch
        with torch.inference_mode():
            padded = self._tokenizer.pad({"input_ids": tokens}, return_tensors="pt").to(self._device)
            logits = self._network(**padded).logits
            is_padding = padded["attention_mask"].unsqueeze(-1) == 0
            weights = self.model.pooling.weights(logits, is_padding)
            rows: np.ndarray = weights.float().cpu().numpy()  # NaN stays NaN, so that the check finds it
        return rows


# By options and content hash, which changes with the model's files.
_OPEN_MODELS: OpenModels[tuple[SparseOptions, str], SparseEmbedder] = OpenModels()


def heaviest(weights: np.ndarray, top_k: int, min_weight: float) -> SparseVector:
    """Return the `top_k` heaviest entries of one text, by index; of equal ones the first. NaN is included,
    so that the check of the table finds it."""
    entries = np.flatnonzero(~((weights <= 0) | (weights < min_weight)))
    if len(entries) > top_k:
        order = np.argsort(-weights[entries], kind="stable")[:top_k]
        entries = np.sort(entries[order])
    return entries.astype(np.uint32), weights[entries].astype(np.float32)


_EMPTY: SparseVector = (np.empty(0, np.uint32), np.empty(0, np.float32))


def within_memory(batch_tokens: int, entries: int) -> int:
    """Return the tokens per batch whose logits fit the memory limit. A longer text is a batch of its own
    and exceeds the limit."""
    return min(batch_tokens, max(1, _MAX_LOGITS // entries))


def _batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield batches of text indices, by length, within `batch_tokens` with padding; skip empty texts."""
    batch: list[int] = []
    for index in sorted((i for i, length in enumerate(lengths) if length), key=lambda i: (lengths[i], i)):
        if batch and lengths[index] * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
