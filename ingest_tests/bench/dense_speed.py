"""Dense vectors, float32 and int8, against `SentenceTransformer.encode(list)` with its default batch size."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ingest_assets.embedders.model_layout import read_layout
from ingest_assets.embedders.onnx import cores
from ingest_assets.embedders.providers import close_dense, open_dense
from ingest_assets.settings.embeddings import PACKAGED_MODEL, DenseOptions
from ingest_tests.bench.chunk_texts import abstracts, chunk_texts
from ingest_tests.bench.comparing import compared
from ingest_tests.bench.figures import Figure, Size

TEXTS = 192


@dataclass(frozen=True, slots=True)
class _Kind:
    """A provider and its requirements: the speed ratio, and the cosine to the naive vectors."""

    name: str
    provider: str
    ratio: float
    cosine: Literal["min", "mean"]
    least_cosine: float


_KINDS = (_Kind("fp32", "onnx", 1.7, "min", 0.99999), _Kind("int8", "onnx-int8", 2.4, "mean", 0.985))


def measure(size: Size) -> list[Figure]:
    """Run both sides in this process, in turns, with the same cores and warm models."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(cores())
    naive = SentenceTransformer(read_layout(PACKAGED_MODEL).path, device="cpu")
    chunks, note = chunk_texts(size, size.of(TEXTS))
    long = abstracts(size, size.of(TEXTS) // 2)
    figures = [Figure("chunks", len(chunks), "texts", note=note)]
    for kind in _KINDS:
        figures += _figures(kind, chunks, naive.encode, wanted=kind.ratio)
        # Texts of one length near the model's limit: both sides do nothing but the same
        # multiplications, at the speed of the processor.
        figures += (
            _figures(replace(kind, name=f"{kind.name}, long texts"), long, naive.encode) if long else []
        )
    return figures


def _figures(
    kind: _Kind, texts: list[str], encode: Callable[[list[str]], np.ndarray], least_ratio: float | None = None
) -> list[Figure]:
    options = DenseOptions(provider=kind.provider)
    embedder = open_dense(options)
    encode(texts[:8])
    embedder.embed(texts[:8])
    done = compared(lambda: encode(texts), lambda: embedder.embed(texts))
    close_dense(options)
    lengths = np.linalg.norm(done.naive, axis=1) * np.linalg.norm(done.ours, axis=1)
    cosines = (done.naive * done.ours).sum(axis=1) / lengths
    cosine = float(cosines.min() if kind.cosine == "min" else cosines.mean())
    return [
        done.figure(f"{kind.name}: times as fast", *((">=", least_ratio) if least_ratio else ())),
        Figure(f"{kind.name}: {kind.cosine} cosine", cosine, "", ">=", kind.least_cosine),
    ]
