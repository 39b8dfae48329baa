"""The `openai` provider, against a real server: what it asks for, in which batches, and how it ends."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.batching import counting
from ingest_assets.embedders.errors import EmbedderClosed, TextRefused
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_tests.conftest import clean_environment
from ingest_tests.embedders.vector_server import (
    DIM,
    QUICK,
    VectorScript,
    embedder_of,
    options_for,
    poisoned,
    right_answer,
    serving,
    vectors_of,
)
from ingest_tests.parsing.vision_server import Reply, refused


def test_every_text_has_its_vector_in_order():
    """Whatever order the micro-batches had."""
    with serving() as server, embedder_of(server, batch_size=3) as embedder:
        texts = [f"{'long ' * (n % 7)}text {n}" for n in range(20)]

        assert (embedder.embed(texts) == vectors_of(texts)).all()
        assert embedder.embed([]).shape == (0, DIM)
        assert max(map(len, server.inputs)) <= 3


def test_a_request_says_what_the_protocol_wants():
    """Model, input and format; dimensions only when the settings say so; the key as a bearer."""
    with serving() as server:
        with embedder_of(server, environ={"KEY": "secret-key"}, api_key_env="KEY") as embedder:
            embedder.embed(["a"])
        with embedder_of(server, send_dimensions=True) as embedder:
            embedder.embed(["a"])

    assert server.asked[0].path == "/v1/embeddings"
    assert server.asked[0].body == {"model": "some-model", "input": ["a"], "encoding_format": "float"}
    assert server.asked[0].headers["authorization"] == "Bearer secret-key"
    assert server.asked[1].body["dimensions"] == DIM
    assert "authorization" not in server.asked[1].headers


def test_prefixes_go_before_texts():
    """Queries and chunks have their own."""
    with serving() as server:
        options = options_for(server.url).model_copy(
            update={"query_prefix": "query: ", "passage_prefix": "passage: "}
        )
        embedder = RemoteEmbedder(options, {}, QUICK)
        embedder.embed(["a"])
        embedder.embed(["a"], "query")
        embedder.close()

    assert server.inputs == [["passage: a"], ["query: a"]]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_text_that_is_refused_costs_nobody_else(status: int):
    """The batch is divided until the offender stands alone; callers of other texts get their vectors."""
    texts = [f"text {n}" for n in range(16)]
    with (
        serving(poisoned(refused(status), "text 5")) as server,
        embedder_of(server, max_in_flight=1) as embedder,
        ThreadPoolExecutor(16) as pool,
    ):
        with pytest.raises(TextRefused, match=f"status {status}") as caught:
            embedder.embed(texts)
        assert caught.value.detail["index"] == 5

        found = list(pool.map(lambda text: _vector_or_error(embedder, text), texts))

    assert [text for text, one in zip(texts, found, strict=True) if isinstance(one, ItemError)] == ["text 5"]
    assert len(server.asked) < 40


def _vector_or_error(embedder: RemoteEmbedder, text: str) -> np.ndarray | ItemError:
    try:
        return embedder.embed([text])
    except ItemError as error:
        return error


def test_a_batch_that_is_too_large_teaches_the_size():
    """The second batch is asked for in pieces that the server takes."""
    script: VectorScript = lambda n, texts: refused(413) if len(texts) > 4 else None  # noqa: E731
    texts = [f"text {n}" for n in range(8)]
    with serving(script) as server, embedder_of(server, batch_size=8) as embedder:
        embedder.embed(["warm up"])
        for _ in range(2):
            assert (embedder.embed(texts) == vectors_of(texts)).all()

        assert [len(texts) for texts in server.inputs] == [1, 8, 4, 4, 4, 4]


def test_requests_in_flight_are_bounded():
    """Over all threads of the process."""

    def script(number: int, texts: list[str]) -> Reply:
        return replace(right_answer(texts), seconds=0.02)

    with (
        serving(script) as server,
        embedder_of(server, max_in_flight=3, batch_size=1) as embedder,
        ThreadPoolExecutor(12) as pool,
    ):
        list(pool.map(lambda n: embedder.embed([f"{n} a", f"{n} b"]), range(12)))

        assert len(server.asked) == 24
        assert 2 <= server.server.most_at_once <= 3


def test_tokens_and_cost_are_counted_for_whom_they_were_spent():
    """They add up to what the server said, whoever shared a request."""
    with serving() as server, embedder_of(server, usd_per_million_tokens=0.13, batch_size=64) as embedder:
        with counting() as counts:
            embedder.embed(["word " * 1000, "a", "b c"])

        assert counts == {"requests": 1, "tokens": 1003, "cost_micro_usd": 130}


@pytest.mark.parametrize(
    "script",
    [lambda n, texts: refused(503, Retry_After="50"), lambda n, texts: Reply(b"", seconds=3.0)],
    ids=["waiting for its turn", "waiting for the server"],
)
def test_closing_ends_all_waiting_at_once(script: VectorScript):
    """Ctrl-C must not wait for a server's pause, nor for the server."""
    pace = replace(QUICK, longest_asked_seconds=50.0)
    with serving(script) as server:
        embedder = RemoteEmbedder(options_for(server.url), {}, pace)
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(embedder.embed, ["a"])
            while not server.asked:
                time.sleep(0.005)
            closing = threading.Thread(target=embedder.close)
            closing.start()
            with pytest.raises(EmbedderClosed):
                result.result(timeout=2.5)
            closing.join(2.5)
            assert not closing.is_alive()


_ENDS_WHILE_WAITING = """
import sys, threading
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_assets.settings.embeddings import DenseOptions

embedder = RemoteEmbedder(DenseOptions.model_validate_json(sys.argv[1]), {})
threading.Thread(target=embedder.embed, args=(["a"],), daemon=True).start()
print("asked", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize(
    "reply", [refused(503, Retry_After="50"), Reply(b"", seconds=20.0)], ids=["pause", "hang"]
)
def test_a_program_ends_though_a_request_waits(reply: Reply):
    """Nobody closed the embedder, and Python waits for the threads of pools."""
    with serving(lambda n, texts: reply) as server:
        arguments = [sys.executable, "-c", _ENDS_WHILE_WAITING, options_for(server.url).model_dump_json()]
        process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment()
        )
        assert process.stdout is not None
        process.stdout.readline()
        while not server.asked:
            time.sleep(0.005)

        process.communicate(b"go\n", timeout=15)

    assert process.returncode == 0
