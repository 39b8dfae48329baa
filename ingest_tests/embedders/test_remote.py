"""The `openai` provider against a real server: settings, requests, closing."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.batcher import collect_counts
from ingest_assets.embedders.errors import EmbedderClosed, EndpointKeyMissing
from ingest_assets.embedders.providers import describe_dense
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_assets.settings.embeddings import DenseOptions, RemoteOptions
from ingest_tests.conftest import clean_environment
from ingest_tests.embedders.vector_server import (
    DIM,
    QUICK,
    VectorScript,
    embedder_of,
    options_for,
    right_answer,
    serving,
    vectors_of,
)
from ingest_tests.parsing.vision_server import Reply, refused


def test_every_text_has_its_vector_in_order():
    """In any order of the micro-batches."""
    with serving() as server, embedder_of(server, batch_size=3) as embedder:
        texts = [f"{'long ' * (n % 7)}text {n}" for n in range(20)]

        assert (embedder.embed(texts) == vectors_of(texts)).all()
        assert embedder.embed([]).shape == (0, DIM)
        assert max(map(len, server.inputs)) <= 3


def test_a_request_follows_the_protocol():
    """Model, input and format; dimensions only if set; the key as a bearer token."""
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


def test_texts_are_prefixed():
    """Differently for queries and chunks."""
    with serving() as server:
        options = options_for(server.url).model_copy(
            update={"query_prefix": "query: ", "passage_prefix": "passage: "}
        )
        embedder = RemoteEmbedder(options, {}, QUICK)
        embedder.embed(["a"])
        embedder.embed(["a"], "query")
        embedder.close()

    assert server.inputs == [["passage: a"], ["query: a"]]


def test_requests_in_flight_are_limited():
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


def test_tokens_and_cost_are_counted_for_the_caller():
    """They add up to the server's numbers, even for shared requests."""
    with serving() as server, embedder_of(server, usd_per_million_tokens=0.13, batch_size=64) as embedder:
        with collect_counts() as counts:
            embedder.embed(["word " * 1000, "a", "b c"])

        assert counts == {"requests": 1, "tokens": 1003, "cost_micro_usd": 130}


@pytest.mark.parametrize(
    "script",
    [lambda n, texts: refused(503, Retry_After="50"), lambda n, texts: Reply(b"", seconds=3.0)],
    ids=["waiting for its turn", "waiting for the server"],
)
def test_closing_ends_all_waits_at_once(script: VectorScript):
    """Ctrl-C must not wait for a server or for a pause that it asked for."""
    pace = replace(QUICK, max_retry_after_seconds=50.0)
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
def test_a_program_ends_while_a_request_waits(reply: Reply):
    """The embedder is not closed, and Python waits for the threads of pools."""
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dim": None}, "embeddings.dense.dim: not set"),
        ({"remote": RemoteOptions()}, "embeddings.dense.remote.url: not set"),
        ({"model": DenseOptions().model}, "embeddings.dense.model: set it"),
    ],
)
def test_invalid_settings_are_rejected_before_anything_starts(change: dict[str, object], words: str):
    """Planning sends no request, so the vector length must be in the settings."""
    with pytest.raises(ConfigError, match=words):
        describe_dense(options_for("http://127.0.0.1:9/v1").model_copy(update=change))


@pytest.mark.parametrize(
    "url", ["localhost:80", "ftp://host/x", "http://user:pass@host/", "http://", "http://h/#x"]
)
def test_a_url_must_be_valid_and_without_credentials(url: str):
    """Settings are shown and logged."""
    with pytest.raises(ValueError, match="should be an http"):
        RemoteOptions(url=url)


def test_the_identity_contains_only_what_changes_vectors():
    """Not the key, the limits or the price."""
    base = options_for("http://host/v1/embeddings")

    def identity(options: DenseOptions) -> object:
        return describe_dense(options).identity

    def with_remote(**change: object) -> DenseOptions:
        return base.model_copy(update={"remote": base.remote.model_copy(update=change)})

    for change in (
        {"api_key_env": "K"},
        {"batch_size": 1},
        {"timeout_seconds": 1},
        {"usd_per_million_tokens": 1},
    ):
        assert identity(with_remote(**change)) == identity(base)
    assert identity(with_remote(url="http://other/v1/embeddings")) != identity(base)
    assert identity(with_remote(url="http://host/v1/embeddings?deployment=b")) != identity(base)
    assert identity(with_remote(url="http://a/", name="n")) == identity(
        with_remote(url="http://b/", name="n")
    )
    assert identity(base.model_copy(update={"model": "other"})) != identity(base)
    assert identity(base.model_copy(update={"passage_prefix": "p: "})) != identity(base)
    assert "secret" not in str(identity(with_remote(url="http://host/?key=secret")))


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}, {"KEY": " spaced "}, {"KEY": "schlüssel"}])
def test_the_error_for_a_missing_key_names_its_variable(environ: dict[str, str]):
    """Never its value."""
    with pytest.raises(EndpointKeyMissing, match="KEY") as caught:
        RemoteEmbedder(options_for("http://127.0.0.1:9/", api_key_env="KEY"), environ, QUICK)

    assert caught.value.category == "config"
