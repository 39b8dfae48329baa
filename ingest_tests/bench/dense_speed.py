"""Dense vectors, float32 and int8, against `SentenceTransformer.encode(list)` with its default batch size."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ingest_assets.embedders.onnx_session import cores
from ingest_assets.embedders.recipe import read_recipe
from ingest_assets.embedders.registry import close_dense, open_dense
from ingest_assets.model.embedding import PACKAGED_MODEL, DenseOptions
from ingest_tests.bench.comparing import compared
from ingest_tests.bench.figures import Figure, Size

CHUNKS = 96
_ABSTRACTS = Path("retrieval") / "cranfield" / "cran.all.1400"


def measure(size: Size) -> list[Figure]:
    """Both sides in this process, in turns, with the same cores and warm models."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(cores())
    naive = SentenceTransformer(read_recipe(PACKAGED_MODEL).path, device="cpu")
    texts = chunk_texts(size)
    return [
        *_figures("fp32", "onnx", naive.encode, texts, 1.7, ("min", 0.99999)),
        *_figures("int8", "onnx-int8", naive.encode, texts, 2.4, ("mean", 0.985)),
    ]


def _figures(
    name: str,
    provider: str,
    encode: Callable[[list[str]], np.ndarray],
    texts: list[str],
    ratio: float,
    parity: tuple[str, float],
) -> list[Figure]:
    options = DenseOptions(provider=provider)
    embedder = open_dense(options)
    encode(texts[:8])
    embedder.embed(texts[:8])
    done = compared(lambda: encode(texts), lambda: embedder.embed(texts))
    close_dense(options)
    lengths = np.linalg.norm(done.naive, axis=1) * np.linalg.norm(done.ours, axis=1)
    cosines = (done.naive * done.ours).sum(axis=1) / lengths
    which, bound = parity
    found = float(cosines.min() if which == "min" else cosines.mean())
    return [
        done.figure(f"{name}: times as fast", ">=", ratio),
        Figure(f"{name}: {which} cosine", found, "", ">=", bound),
    ]


def chunk_texts(size: Size) -> list[str]:
    """Abstracts of the corpus, or words with abstracts' lengths where there is none."""
    number = size.of(CHUNKS)
    file = size.corpus / _ABSTRACTS if size.corpus else None
    if file is None or not file.is_file():
        return _made_up(number)
    parts = re.split(r"^\.I \d+\n", file.read_text(encoding="latin-1"), flags=re.M)[1:]
    texts = [" ".join(part.partition("\n.W\n")[2].split()) for part in parts]
    return [text for text in texts if text][:number]


def _made_up(number: int) -> list[str]:
    """Half of the abstracts are between 100 and 200 words long."""
    chance = random.Random(7)
    words = [
        "the",
        "boundary",
        "layer",
        "of",
        "a",
        "flat",
        "plate",
        "in",
        "supersonic",
        "flow",
        "is",
        "heated",
        "where",
        "shock",
        "waves",
        "meet",
        "it",
    ]
    lengths = [max(12, min(400, round(chance.gauss(150, 70)))) for _ in range(number)]
    return [" ".join(chance.choice(words) for _ in range(length)) for length in lengths]
