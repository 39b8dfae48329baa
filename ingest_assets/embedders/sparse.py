"""Sparse vectors from masked-language models of the SPLADE kind: weights of vocabulary entries.

The weight of an entry is the greatest log(1 + relu(logit)) over all positions of the text, unless the model's
own files say otherwise.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_files import (
    content_hash_of,
    find_folder,
    load_whole,
    load_words,
    module_kind,
    name_of,
    number_in,
    positions_of,
    read_modules,
    read_object,
    require_no_code,
    while_unchanged,
)
from ingest_assets.embedders.providers import Openings
from ingest_assets.embedders.torch import device_for, require_known
from ingest_assets.settings.embeddings import SparseOptions

# How a SPLADE model's own files say to make weights of logits, in the layout of sentence-transformers.


_STRATEGY, _ACTIVATION = "pooling_strategy", "activation_function"
_KNOWN = {_STRATEGY: ("max", "sum"), _ACTIVATION: ("relu", "log1p_relu")}
_CHANGES_NO_WEIGHT = {"embedding_dimension", "word_embedding_dimension", "chunk_size"}
_KINDS = (["MLMTransformer", "SpladePooling"], ["Transformer", "SpladePooling"])
_TASK = "fill-mask"


@dataclass(frozen=True, slots=True)
class SpladePooling:
    """What becomes of the logits of a text's positions; without a file of its own, what the paper has."""

    is_sum: bool = False
    takes_log_twice: bool = False

    def weights(self, logits: Any, is_padding: Any) -> Any:
        """Weights (texts, entries) of logits (texts, positions, entries), which are written over: a copy of
        them would be the greatest thing in memory."""
        if self.is_sum:
            return self._activated(logits).masked_fill_(is_padding, 0).sum(dim=1)
        # The activation never falls, so that of the greatest logit is the greatest.
        return self._activated(logits.masked_fill_(is_padding, float("-inf")).amax(dim=1))

    def _activated(self, logits: Any) -> Any:
        once = logits.relu_().log1p_()
        return once.log1p_() if self.takes_log_twice else once


def read_splade(folder: Path, setting: str) -> tuple[Path, SpladePooling]:
    """Where the network of a model folder is, and its pooling; what is not done here is refused."""
    modules = read_modules(folder, setting)
    if not modules and not (folder / "modules.json").is_file():
        return folder, SpladePooling()
    kinds = [module_kind(module) for module in modules]
    if kinds not in _KINDS:
        raise ConfigError(
            f"{setting}: {folder / 'modules.json'} lists {', '.join(kinds) or 'nothing'}, which is not run "
            f"here; give a model of {' and '.join(_KINDS[0])}."
        )
    network, pooling = modules
    path = folder / network["path"]
    if kinds[0] == "Transformer":
        # It gives hidden states, unless its file asks for logits.
        file = path / "sentence_bert_config.json"
        task = read_object(file, setting).get("transformer_task")
        if task != _TASK:
            raise ConfigError(
                f"{setting}: {file} says transformer_task {task!r}; only {_TASK!r} is run here."
            )
    return path, _pooling(folder / pooling["path"] / "config.json", setting)


def _pooling(file: Path, setting: str) -> SpladePooling:
    said = read_object(file, setting)
    for name in sorted(said.keys() - _CHANGES_NO_WEIGHT):
        if said[name] not in _KNOWN.get(name, ()):
            known = "; ".join(f"{key} {' or '.join(values)}" for key, values in _KNOWN.items())
            raise ConfigError(f"{setting}: {file} says {name} {said[name]!r}; known here are: {known}.")
    return SpladePooling(
        is_sum=said.get(_STRATEGY) == "sum", takes_log_twice=said.get(_ACTIVATION) == "log1p_relu"
    )


_SETTING = "embeddings.sparse.model"
# Logits of one forward pass, of which there is one for each token and entry: 512 MiB.
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


@while_unchanged(_SETTING)
def sparse_model(name: str) -> SparseModel:
    """The model of that folder or hub name; told without opening it."""
    folder = find_folder(name, _SETTING)
    require_no_code(folder, _SETTING)
    path, pooling = read_splade(folder, _SETTING)
    config = read_object(path / "config.json", _SETTING)
    kinds = config.get("architectures") or []
    if not any(str(kind).endswith("ForMaskedLM") for kind in kinds):
        raise ConfigError(
            f"{_SETTING}: {path} is no masked-language model (its config.json says architectures "
            f"{', '.join(map(str, kinds)) or 'none'}); give one of the SPLADE kind."
        )
    if not any((path / file).is_file() for file in ("tokenizer.json", "vocab.txt")):
        raise ConfigError(f"{_SETTING}: {path} has no tokenizer.json; give a complete model folder.")
    if not any(path.glob("*.safetensors")) and not any(path.glob("pytorch_model*.bin")):
        raise ConfigError(f"{_SETTING}: {path} has no weights (*.safetensors); give a complete model folder.")
    return SparseModel(
        name=name_of(name, folder),
        path=str(path),
        dim=number_in(config, ("vocab_size",), path, _SETTING),
        max_tokens=positions_of(config, path, _SETTING),
        content_hash=content_hash_of(folder, _SETTING),
        pooling=pooling,
    )


def open_sparse(options: SparseOptions) -> "SparseEmbedder":
    """The process's one embedder for these options; threads share it."""
    key = (options, sparse_model(options.model).content_hash)
    who = f"embeddings.sparse: {options.model} cannot be opened"
    return _OPENINGS.get(key, who, lambda: SparseEmbedder(options))


class SparseEmbedder:
    """An open model. A document's texts are embedded in batches of its own only, sorted by length, so that
    its vectors do not depend on its neighbours or on the order of work."""

    def __init__(self, options: SparseOptions) -> None:
        import torch
        from transformers import AutoModelForMaskedLM

        self.model = sparse_model(options.model)
        self._torch, self._options = torch, options
        self._device = device_for(options.device, "embeddings.sparse.device")
        self._tokenizer = load_words(self.model.path)
        loaded = load_whole(AutoModelForMaskedLM, self.model.path, _SETTING)
        self._network = loaded.float().eval().to(self._device)
        self._max_tokens = min(options.max_tokens or self.model.max_tokens, self.model.max_tokens)
        self._batch_tokens = within_memory(options.batch_tokens, self.model.dim)
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> list[SparseVector]:
        """Of each text the heaviest entries, by index: uint32 indices and float32 weights.

        Text past the model's limit is cut. A text of which no entry weighs anything has none.
        """
        found: list[SparseVector] = [_EMPTY] * len(texts)
        if not texts:
            return found
        with self._lock:
            tokens = self._tokenizer(list(texts), truncation=True, max_length=self._max_tokens)["input_ids"]
            require_known(tokens, self.model.dim)
            for chosen in _batches([len(each) for each in tokens], self._batch_tokens):
                weights = self._weights([tokens[at] for at in chosen])
                for at, row in zip(chosen, weights, strict=True):
                    found[at] = heaviest(row, self._options.top_k, self._options.min_weight)
        return found

    def _weights(self, tokens: list[list[int]]) -> np.ndarray:
        torch = self._torch
        with torch.inference_mode():
            padded = self._tokenizer.pad({"input_ids": tokens}, return_tensors="pt").to(self._device)
            logits = self._network(**padded).logits
            is_padding = padded["attention_mask"].unsqueeze(-1) == 0
            weights = self.model.pooling.weights(logits, is_padding)
            found: np.ndarray = weights.float().cpu().numpy()  # a NaN stays one, to be seen
        return found


# By what was asked for, and the content of the model that this is now.
_OPENINGS: Openings[tuple[SparseOptions, str], SparseEmbedder] = Openings()


def heaviest(weights: np.ndarray, top_k: int, min_weight: float) -> SparseVector:
    """The entries that are kept of one text's weights, by index; of equal ones the first. NaN is kept, so
    that whoever checks can see it."""
    kept = np.flatnonzero(~((weights <= 0) | (weights < min_weight)))
    if len(kept) > top_k:
        order = np.argsort(-weights[kept], kind="stable")[:top_k]
        kept = np.sort(kept[order])
    return kept.astype(np.uint32), weights[kept].astype(np.float32)


_EMPTY: SparseVector = (np.empty(0, np.uint32), np.empty(0, np.float32))


def within_memory(batch_tokens: int, entries: int) -> int:
    """As many tokens of a batch as leave its logits within bounds. A text of more is a batch by itself, and
    takes what it takes."""
    return min(batch_tokens, max(1, _MAX_LOGITS // entries))


def _batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Positions by length, in batches of at most so many tokens, padding included; none of no token."""
    chosen: list[int] = []
    for at in sorted((at for at, length in enumerate(lengths) if length), key=lambda at: (lengths[at], at)):
        if chosen and lengths[at] * (len(chosen) + 1) > batch_tokens:
            yield chosen
            chosen = []
        chosen.append(at)
    if chosen:
        yield chosen
