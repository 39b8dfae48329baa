"""Dense vectors from a transformers model on torch."""

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ingest_assets.embedders.models import ModelFolder, load_tokenizer, model_folder
from ingest_assets.model.embedding import DenseOptions

_opening = threading.Lock()


def open_embedder(options: DenseOptions) -> "TransformersEmbedder":
    """The process's one embedder for these options; threads share it."""
    with _opening:
        return _open(options)


@functools.cache
def _open(options: DenseOptions) -> "TransformersEmbedder":
    return TransformersEmbedder(model_folder(options.model), 8)


class TransformersEmbedder:
    """Mean- or CLS-pooled sentence vectors, not yet scaled to unit length.

    A document is embedded in batches of its own chunks only, sorted by length, so that its vectors do not
    depend on its neighbours, on the order of work or on how often a run was interrupted.
    """

    def __init__(self, model: ModelFolder, batch_size: int) -> None:
        import torch
        from transformers import AutoModel
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        self._torch = torch
        self._device = "cuda" if has_cuda() else "cpu"
        self._tokenizer = load_tokenizer(model)
        self._model = AutoModel.from_pretrained(model.path, local_files_only=True).eval().to(self._device)
        self._batch_size = batch_size
        self._takes_first_token = _pools_by_first_token(Path(model.path))
        self._lock = threading.Lock()
        self.model = model

    @property
    def dim(self) -> int:
        return self.model.dim

    @property
    def model_id(self) -> str:
        return self.model.model_id

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """One row per text. Text past the model's limit is cut, as the model's authors do."""
        order = sorted(range(len(texts)), key=lambda index: (len(texts[index]), index))
        vectors = np.empty((len(texts), self.dim), dtype=np.float32)
        for start in range(0, len(order), self._batch_size):
            chosen = order[start : start + self._batch_size]
            vectors[chosen] = self._forward([texts[index] for index in chosen])
        return vectors

    def _forward(self, texts: list[str]) -> np.ndarray:
        with self._lock, self._torch.inference_mode():
            encoded = self._tokenizer(
                texts, padding=True, truncation=True, max_length=self.model.max_tokens, return_tensors="pt"
            ).to(self._device)
            hidden = self._model(**encoded).last_hidden_state
            return self._pool(hidden, encoded["attention_mask"]).float().cpu().numpy()

    def _pool(self, hidden: Any, mask: Any) -> Any:
        if self._takes_first_token:
            return hidden[:, 0]
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)


def has_cuda() -> bool:
    """True when models run on a GPU here."""
    import torch

    return torch.cuda.is_available()


def _pools_by_first_token(folder: Path) -> bool:
    import json

    file = folder / "1_Pooling" / "config.json"
    return file.is_file() and bool(json.loads(file.read_text(encoding="utf-8")).get("pooling_mode_cls_token"))
