"""Dense vectors from a transformers model on torch: CPU, CUDA or MPS."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ingest_assets.embedders.devices import device_for
from ingest_assets.embedders.facts import facts_of, require_own_modules
from ingest_assets.embedders.loading import load_whole, load_words
from ingest_assets.embedders.pooling import pool_batch
from ingest_assets.embedders.recipe import SETTING, read_recipe, usage_of
from ingest_assets.embedders.tokens import Encoder
from ingest_assets.model.embedding import DenseFacts, DenseOptions, Device, Kind
from ingest_assets.model.identity import installed_versions

BATCH_SIZE_ON_GPU = 64
_USUAL_TOKENS = 256


class LocalKind:
    """Any architecture that transformers knows."""

    def describe(self, options: DenseOptions) -> DenseFacts:
        recipe = read_recipe(options.model)
        require_own_modules(recipe, usage_of(recipe, options))
        return facts_of(
            "local",
            recipe,
            usage_of(recipe, options),
            installed_versions("torch", "transformers", "tokenizers"),
        )

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
