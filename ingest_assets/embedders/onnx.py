"""Dense vectors from ONNX forms of models on the CPU: torch's in float32, or nearly so and faster in int8."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import installed_versions
from ingest_assets.embedders.batching import Batcher
from ingest_assets.embedders.model_files import float32_bytes
from ingest_assets.embedders.model_recipe import (
    Recipe,
    Usage,
    facts_of,
    read_recipe,
    require_own_modules,
    usage_of,
)
from ingest_assets.embedders.onnx_export import (
    FLOAT32,
    INT8,
    LIBRARIES,
    VERSION,
    Export,
    infer,
    open_session,
    require_export,
)
from ingest_assets.embedders.torch import Encoder, padded, pool_batch, read_tokenizer
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions, Kind

# Those that are proved here to export, fuse and give torch's vectors.
ARCHITECTURES = ("bert", "camembert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta")
MAX_WEIGHTS_BYTES = 1_900_000_000  # an ONNX file holds two gigabytes
# Lanes of one thread each beat one lane of many. A batch saves reading the weights again, which matters for
# short texts alone; beyond that, what is computed for it no longer fits the core's cache.
BATCH_TOKENS, BATCH_SIZE = 256, 32
_GOOD_INT8_COSINE = 0.98

_log = logging.getLogger(__name__)


class OnnxKind:
    """Float32: exact, and the same bits in any batch, so that documents share their batches."""

    name: ClassVar[str] = "onnx"
    file: ClassVar[str] = FLOAT32

    def describe(self, options: DenseOptions) -> DenseFacts:
        recipe = read_recipe(options.model)
        usage = usage_of(recipe, options)
        require_own_modules(recipe, usage)
        if options.device not in ("auto", "cpu"):
            raise ConfigError(
                f"embeddings.dense.device: provider {self.name} runs on the CPU, not on {options.device}; "
                'set device = "cpu", or provider = "local".'
            )
        fault = export_fault(recipe)
        if fault:
            raise ConfigError(
                f"embeddings.dense.provider: {recipe.name} is not exported to ONNX ({fault}); "
                'set provider = "local".'
            )
        return facts_of(self.name, recipe, usage, installed_versions(*LIBRARIES), export=VERSION)

    def open(self, options: DenseOptions) -> "OnnxEmbedder":
        facts = self.describe(options)
        recipe = read_recipe(options.model)
        export = require_export(recipe, options.exports_path)
        self._look_at_quality(export, facts.model_id)
        return OnnxEmbedder(export.folder / self.file, recipe, usage_of(recipe, options), options)

    def _look_at_quality(self, export: Export, model_id: str) -> None:
        if not export.is_exact:
            raise ConfigError(
                f"embeddings.dense.provider: as ONNX, {model_id} differs from torch (cosine "
                f'{export.note.get("min_cosine", 0):.6f}); run again with provider = "auto", which takes '
                'torch from now on, or set provider = "local".'
            )


class Int8Kind(OnnxKind):
    """Weights and activations in 8 bits. Not the same bits in other batches: one text at a time."""

    name: ClassVar[str] = "onnx-int8"
    file: ClassVar[str] = INT8

    def _look_at_quality(self, export: Export, model_id: str) -> None:
        cosine = export.note.get("int8_mean_cosine", 0)
        if cosine < _GOOD_INT8_COSINE:
            _log.warning(
                "embeddings.dense: in 8 bits, vectors of %s have a cosine of %.3f with its own; see what "
                'that costs with `ingest eval retrieval`, or set provider = "onnx".',
                model_id,
                cosine,
            )


def cores() -> int:
    """What this process may use: its affinity, or fewer if OMP_NUM_THREADS says so, as Ray does."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(own, int(asked)) if asked.isdecimal() and int(asked) > 0 else own


def export_fault(recipe: Recipe) -> str | None:
    """Why a model is not exported, by its files alone."""
    if recipe.model_type not in ARCHITECTURES:
        return f"architecture {recipe.model_type or 'unknown'}, known are {', '.join(ARCHITECTURES)}"
    if float32_bytes(Path(recipe.path), recipe.config) > MAX_WEIGHTS_BYTES:
        return "its weights are larger than an ONNX file may be"
    return None


class OnnxEmbedder:
    """Pooled token vectors, not yet scaled to unit length; threads share micro-batches."""

    def __init__(self, file: Path, recipe: Recipe, usage: Usage, options: DenseOptions) -> None:
        is_int8 = file.name == INT8
        self._session: Any = open_session(file, threads=1)
        self._usage, self._pad_id = usage, recipe.pad_id
        self._encoder = Encoder(read_tokenizer(recipe), recipe, usage)
        has_free_batches = not is_int8 and self._is_batch_invariant(usage.max_tokens, recipe.words or 6)
        self._batcher: Batcher[list[int]] = Batcher(
            self._run,
            lambda batch: [len(ids) for ids in batch],
            lanes=cores(),
            batch_tokens=options.batch_tokens or BATCH_TOKENS,
            batch_size=BATCH_SIZE if has_free_batches else 1,
        )
        self.model_id, self.dim = recipe.model_id, usage.dim

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> np.ndarray:
        """One row per text, in their order."""
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        return self._batcher.embed(self._encoder.encode(texts, kind))

    def close(self) -> None:
        self._batcher.close()
        self._session = None

    def _run(self, batch: list[list[int]]) -> list[np.ndarray]:
        hidden = infer(self._session, *padded(batch, self._pad_id))
        return pool_batch(hidden, [len(ids) for ids in batch], self._usage.pooling, self._usage.dim)

    def _is_batch_invariant(self, max_tokens: int, words: int) -> bool:
        """Tried on this very processor: where padding or neighbours change a bit, texts go one by one."""
        lengths = [min(length, max_tokens) for length in (3, 7, 18, 33, 64)]
        probes = [
            [min(5, words - 1) + index % max(1, min(words - 5, 90)) for index in range(n)] for n in lengths
        ]
        alone = [self._run([ids])[0] for ids in probes]
        together = [*self._run(probes[:2]), *self._run(probes[2:])]
        three = zip(alone, together, self._run(probes), strict=True)
        return all(one.tobytes() == two.tobytes() == all_.tobytes() for one, two, all_ in three)
