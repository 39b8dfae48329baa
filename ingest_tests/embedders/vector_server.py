"""An embeddings endpoint on this machine, which answers rightly unless its script says otherwise."""

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
QUICK = Pace(first_pause_seconds=0.001, longest_pause_seconds=0.002, longest_asked_seconds=0.05)
TEXTS = ["one", "two words", "three words here", "four"]

VectorScript = Callable[[int, list[str]], Reply | None]


def first(number: int, reply: Reply) -> VectorScript:
    """The first requests are answered so, and the others rightly."""
    return lambda n, texts: reply if n < number else None


def poisoned(reply: Reply, *bad: str) -> VectorScript:
    """Requests with these texts are answered so."""
    return lambda n, texts: reply if set(bad) & set(texts) else None


def vector_of(text: str, dim: int = DIM) -> np.ndarray:
    """What the endpoint makes of a text: always the same."""
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8])
    return np.random.default_rng(seed).standard_normal(dim).astype(np.float32)


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    return np.stack([vector_of(text) for text in texts])


def items_of(texts: Sequence[str], dim: int = DIM) -> list[dict[str, Any]]:
    """The list `data` of a right answer."""
    return [
        {"object": "embedding", "index": index, "embedding": vector_of(text, dim).astype(float).tolist()}
        for index, text in enumerate(texts)
    ]


def answer_of(items: Any, tokens: int = 0) -> Reply:
    """An answer with these items, whatever they are."""
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply(json.dumps({"object": "list", "data": items, "model": "m", "usage": usage}).encode())


def right_answer(texts: Sequence[str], dim: int = DIM) -> Reply:
    return answer_of(items_of(texts, dim), tokens=sum(len(text.split()) for text in texts))


@dataclass
class VectorServer:
    """What was asked, as lists of texts."""

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
    """A server for the length of a block; where the script says nothing, the answer is right."""

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
