"""An embeddings endpoint on this machine with correct answers, unless its script returns another."""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest_assets.embedders.endpoint import Pace
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_assets.settings.embeddings import DenseOptions, RemoteOptions
from ingest_tests.parsing.vision_server import Asked, Reply, VisionServer, answering

DIM = 8
QUICK = Pace(first_pause_seconds=0.001, max_pause_seconds=0.002, max_retry_after_seconds=0.05)
TEXTS = ["one", "two words", "three words here", "four"]

VectorScript = Callable[[int, list[str]], Reply | None]


def first(number: int, reply: Reply) -> VectorScript:
    """Return this reply to the first requests, and correct answers afterwards."""
    return lambda n, texts: reply if n < number else None


def poisoned(reply: Reply, *bad: str) -> VectorScript:
    """Return this reply to requests that contain one of these texts."""
    return lambda n, texts: reply if set(bad) & set(texts) else None


def vector_of(text: str, dim: int = DIM) -> np.ndarray:
    """Return the endpoint's vector of a text, always the same."""
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8])
    return np.random.default_rng(seed).standard_normal(dim).astype(np.float32)


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    return np.stack([vector_of(text) for text in texts])


def items_of(texts: Sequence[str], dim: int = DIM) -> list[dict[str, Any]]:
    """Return the `data` of a correct answer."""
    return [
        {"object": "embedding", "index": index, "embedding": vector_of(text, dim).astype(float).tolist()}
        for index, text in enumerate(texts)
    ]


def answer_of(items: Any, tokens: int = 0) -> Reply:
    """Return an answer with these items, valid or not."""
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply(json.dumps({"object": "list", "data": items, "model": "m", "usage": usage}).encode())


def right_answer(texts: Sequence[str], dim: int = DIM) -> Reply:
    return answer_of(items_of(texts, dim), tokens=sum(len(text.split()) for text in texts))


@dataclass
class VectorServer:
    """A running server; `inputs` are the texts of its requests."""

    server: VisionServer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1/embeddings"

    @property
    def asked(self) -> list[Asked]:
        return self.server.asked

    @property
    def inputs(self) -> list[list[str]]:
        return [asked.body["input"] for asked in self.server.asked]


@contextlib.contextmanager
def serving(script: VectorScript = lambda number, texts: None, dim: int = DIM) -> Iterator[VectorServer]:
    """Run a server inside a block; answers are correct unless the script returns one."""

    def reply(number: int, asked: Asked) -> Reply:
        texts = asked.body["input"]
        return script(number, texts) or right_answer(texts, dim)

    with answering(reply) as server:
        yield VectorServer(server)


def options_for(url: str, **remote: Any) -> DenseOptions:
    return DenseOptions(
        provider="openai", model="some-model", dim=DIM, remote=RemoteOptions(url=url, **remote)
    )


@contextlib.contextmanager
def embedder_of(
    server: VectorServer, pace: Pace = QUICK, environ: dict[str, str] | None = None, **remote: Any
) -> Iterator[RemoteEmbedder]:
    """An open provider for a server."""
    embedder = RemoteEmbedder(options_for(server.url, **remote), environ or {}, pace)
    try:
        yield embedder
    finally:
        embedder.close()
