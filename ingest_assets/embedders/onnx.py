"""Dense vectors from ONNX exports on the CPU: float32, equal to torch, or int8, faster and less exact."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import installed_versions
from ingest_assets.embedders.batcher import Batcher
from ingest_assets.embedders.model_files import float32_bytes
from ingest_assets.embedders.model_layout import (
    ModelLayout,
    Usage,
    facts_of,
    read_layout,
    require_supported,
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
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions, TextKind

# Tested here: they export, fuse and give torch's vectors.
ARCHITECTURES = ("bert", "camembert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta")
MAX_WEIGHTS_BYTES = 1_900_000_000  # an ONNX file is limited to two gigabytes
# Measured: lanes of one thread each are faster than one lane of many. Batching saves reading the weights,
# which matters for short texts only; larger batches no longer fit the core's cache.
BATCH_TOKENS, BATCH_SIZE = 256, 32
_GOOD_INT8_COSINE = 0.98

_log = logging.getLogger(__name__)


class OnnxFactory:
    """Float32: exact, and bit-equal in any batch, so that documents can share batches."""

    name: ClassVar[str] = "onnx"
    file: ClassVar[str] = FLOAT32

    def describe(self, options: DenseOptions) -> DenseFacts:
        layout = read_layout(options.model)
        usage = usage_of(layout, options)
        require_supported(layout, usage)
        if options.device not in ("auto", "cpu"):
            raise ConfigError(
                f"embeddings.dense.device: provider {self.name} runs on the CPU, not on {options.device}. "
                'Set device = "cpu", or provider = "local".'
            )
        fault = export_fault(layout)
        if fault:
            raise ConfigError(
                f"embeddings.dense.provider: {layout.name} cannot be exported to ONNX ({fault}). "
                'Set provider = "local".'
            )
        return facts_of(self.name, layout, usage, installed_versions(*LIBRARIES), export=VERSION)

    def open(self, options: DenseOptions) -> "OnnxEmbedder":
        facts = self.describe(options)
        layout = read_layout(options.model)
        export = require_export(layout, options.exports_path)
        self._check_quality(export, facts.model_id)
        return OnnxEmbedder(export.folder / self.file, layout, usage_of(layout, options), options)

    def _check_quality(self, export: Export, model_id: str) -> None:
        if not export.is_exact:
            raise ConfigError(
                f"embeddings.dense.provider: the ONNX export of {model_id} differs from torch (cosine "
                f'{export.note.get("min_cosine", 0):.6f}). Run again with provider = "auto", which now uses '
                'torch, or set provider = "local".'
            )


class OnnxInt8Factory(OnnxFactory):
    """Weights and activations in 8 bits. Vectors depend on the batch, so each text runs alone."""

    name: ClassVar[str] = "onnx-int8"
    file: ClassVar[str] = INT8

    def _check_quality(self, export: Export, model_id: str) -> None:
        cosine = export.note.get("int8_mean_cosine", 0)
        if cosine < _GOOD_INT8_COSINE:
            _log.warning(
                "embeddings.dense: 8-bit vectors of %s have a cosine of %.3f with its float32 vectors. "
                'Measure the effect with `ingest eval retrieval`, or set provider = "onnx".',
                model_id,
                cosine,
            )


def cores() -> int:
    """Return the cores of this process: its affinity, or fewer by OMP_NUM_THREADS, which Ray sets."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(threads)) if threads.isdecimal() and int(threads) > 0 else available


def export_fault(layout: ModelLayout) -> str | None:
    """Return why a model cannot be exported, by its files alone."""
    if layout.model_type not in ARCHITECTURES:
        return f"architecture {layout.model_type or 'unknown'}; supported: {', '.join(ARCHITECTURES)}"
    if (size := float32_bytes(Path(layout.path), layout.config)) > MAX_WEIGHTS_BYTES:
        return f"its weights take {size / 1e9:.1f} GB (limit of ONNX: {MAX_WEIGHTS_BYTES / 1e9:.1f} GB)"
    return None


class OnnxEmbedder:
    """Pooled token vectors, not yet scaled to unit length; threads share micro-batches."""

    def __init__(self, file: Path, layout: ModelLayout, usage: Usage, options: DenseOptions) -> None:
        is_int8 = file.name == INT8
        self._session: Any = open_session(file, threads=1)
        self._usage, self._pad_id = usage, layout.pad_id
        self._encoder = Encoder(read_tokenizer(layout), layout, usage)
        has_free_batches = not is_int8 and self._is_batch_invariant(usage.max_tokens, layout.vocab_size or 6)
        self._batcher: Batcher[list[int]] = Batcher(
            self._run,
            lambda batch: [len(ids) for ids in batch],
            lanes=cores(),
            batch_tokens=options.batch_tokens or BATCH_TOKENS,
            batch_size=BATCH_SIZE if has_free_batches else 1,
        )
        self.model_id, self.dim = layout.model_id, usage.dim

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> np.ndarray:
        """Return one row per text, in order."""
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        return self._batcher.embed(self._encoder.encode(texts, kind))

    def close(self) -> None:
        self._batcher.close()
        self._session = None

    def _run(self, batch: list[list[int]]) -> list[np.ndarray]:
        hidden = infer(self._session, *padded(batch, self._pad_id))
        return pool_batch(hidden, [len(ids) for ids in batch], self._usage.pooling, self._usage.dim)

    def _is_batch_invariant(self, max_tokens: int, vocab_size: int) -> bool:
        """Return True if neither padding nor other texts change a vector on this processor."""
        lengths = [min(length, max_tokens) for length in (3, 7, 18, 33, 64)]
        probes = [
            [min(5, vocab_size - 1) + index % max(1, min(vocab_size - 5, 90)) for index in range(n)]
            for n in lengths
        ]
        alone = [self._run([ids])[0] for ids in probes]
        together = [*self._run(probes[:2]), *self._run(probes[2:])]
        three = zip(alone, together, self._run(probes), strict=True)
        return all(one.tobytes() == two.tobytes() == all_.tobytes() for one, two, all_ in three)
