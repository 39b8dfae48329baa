"""Endpoints that are busy, broken or reject everything: what is retried, and which error texts get."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.batcher import collect_counts
from ingest_assets.embedders.errors import (
    EndpointAnswerUnusable,
    EndpointBusy,
    EndpointDenied,
    EndpointRefused,
    EndpointTimeout,
    EndpointUnreachable,
    VectorUnusable,
    WrongDimension,
)
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_tests.embedders.vector_server import (
    QUICK,
    TEXTS,
    VectorScript,
    embedder_of,
    first,
    poisoned,
    right_answer,
    serving,
    vectors_of,
)
from ingest_tests.parsing.vision_server import Reply, refused


@pytest.mark.parametrize(
    "reply",
    [
        refused(429),
        refused(429, Retry_After="0"),
        refused(429, Retry_After="soon"),
        refused(429, Retry_After=formatdate(0, usegmt=True)),
        refused(408),
        refused(409),
        refused(425),
        refused(500),
        refused(502),
        refused(503, Retry_After="99999"),
        refused(529),
        Reply(b"", 0),
        Reply(b""),
        Reply(b"<html>One moment please</html>"),
        Reply(b'{"data": [{"index"'),
        Reply(b"[]"),
        Reply(b'{"data": null}'),
        Reply(b"[" * 100_000),
        Reply(b"junk", headers={"Content-Encoding": "gzip"}),
        Reply(b"", 204),
    ],
    ids=lambda reply: f"{reply.status} {reply.body[:12]!r}",
)
def test_a_temporary_fault_is_retried(reply: Reply):
    """Recognized by status and shape, not by the message."""
    with serving(first(2, reply)) as server, embedder_of(server) as embedder, collect_counts() as counts:
        if reply.status == 204:  # a success without content is not temporary
            with pytest.raises(EndpointRefused, match="status 204"):
                embedder.embed(TEXTS)
            return
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
        assert (counts["requests"], counts["request_retries"]) == (3, 2)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refused(429), EndpointBusy, "status 429.*Lower embeddings.dense.remote.max_in_flight"),
        (
            Reply(b'{"error": {"message": "Slow\\n down."}}', 429),
            EndpointBusy,
            "status 429: Slow down. Lower .*, or run again later. Failed after 3 attempts.$",
        ),
        (Reply(b'{"message": "Out of memory"}', 503), EndpointBusy, "503: Out of memory. See the server"),
        (
            Reply(b'{"error": {"message": "No model loaded"}}'),
            EndpointAnswerUnusable,
            "status 200 without vectors: No model loaded. Check embeddings.dense.model",
        ),
        (refused(503, Retry_After="0"), EndpointBusy, "status 503"),
        (refused(500), EndpointBusy, "status 500"),
        (Reply(b"", 0), EndpointUnreachable, "closed the connection"),
        (Reply(b""), EndpointAnswerUnusable, "status 200 without vectors. Check"),
        (Reply(b"<p>"), EndpointAnswerUnusable, "status 200 without vectors. Check"),
        (Reply(b'{"result": 1}'), EndpointAnswerUnusable, "status 200 without vectors. Check"),
        (Reply(b'{"data": [' + b" " * 3_000_000 + b"]}"), EndpointAnswerUnusable, "without vectors. Check"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_persistent_fault_fails_after_all_attempts(reply: Reply, kind: type[ItemError], words: str):
    """The error contains the URL, and whether it is retryable."""
    with serving(lambda n, texts: reply) as server, embedder_of(server, retries=2) as embedder:
        with pytest.raises(kind, match=words) as caught:
            embedder.embed(TEXTS)

        assert server.url in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "index" not in caught.value.detail, "no text is at fault"
        no_texts_doing = reply.status == 429 or "Retry-After" in reply.headers
        assert server.inputs[3:] == ([] if no_texts_doing else [["text"]])


def test_requests_are_not_retried_while_the_endpoint_is_down():
    """Retries for every document would take all night."""
    state = {"is_dead": True}
    script: VectorScript = lambda n, texts: refused(503) if state["is_dead"] else None  # noqa: E731
    with serving(script) as server, embedder_of(server, retries=4) as embedder:
        for _ in range(3):
            with pytest.raises(EndpointBusy) as caught:
                embedder.embed(["a"])
            assert (caught.value.code, caught.value.retryable) == ("E_ENDPOINT_BUSY", True)
        assert len(server.asked) == 5 + 1 + 1 + 3, "three requests, each with a harmless text"

        state["is_dead"] = False
        embedder.embed(["a"])
        assert len(server.asked) == 11


def test_a_server_that_hangs_is_a_timeout():
    """Without a byte of a response."""
    with (
        serving(lambda n, texts: Reply(b"", seconds=0.4)) as server,
        embedder_of(server, timeout_seconds=0.1, retries=1) as embedder,
    ):
        with pytest.raises(EndpointTimeout, match=r"within 0\.1 s"):
            embedder.embed(["a"])

        assert server.inputs == [["a"], ["a"], ["text"]]


def test_a_refused_connection_is_unreachable():
    """A temporary fault: servers start and stop."""
    with serving() as server:
        pass
    says = r"cannot be reached, or closed .* \(.*\). Start it, see .*\.url\.$"
    with embedder_of(server, retries=1) as embedder, pytest.raises(EndpointUnreachable, match=says):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refused(401), EndpointDenied, "remote.api_key_env"),
        (refused(403), EndpointDenied, "remote.api_key_env"),
        (
            refused(404),
            EndpointRefused,
            "status 404.* also for a short test text. Check model, dim and remote",
        ),
        (refused(405), EndpointRefused, "status 405"),
        (
            refused(301, Location="http://127.0.0.1:9/v2?key=x"),
            EndpointRefused,
            "status 301.*: it redirects to http://127.0.0.1:9/v2, and redirects are not followed",
        ),
        (
            refused(308, Location="/v2/embeddings"),
            EndpointRefused,
            "it redirects to /v2/embed",
        ),
        (refused(400), EndpointRefused, "also for a short test text"),
        (
            Reply(b'{"error": {"code": "insufficient_quota"}}', 429),
            EndpointDenied,
            "no credit left",
        ),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
def test_a_fault_of_the_settings_is_confirmed_by_one_probe(reply: Reply, kind: type[ItemError], words: str):
    """Later requests get the same error without being sent."""
    with serving(lambda n, texts: reply) as server, embedder_of(server) as embedder:
        for _ in range(5):
            with pytest.raises(kind, match=words) as caught:
                embedder.embed(TEXTS)
            assert not caught.value.retryable
        assert [len(texts) for texts in server.inputs] == [len(TEXTS), 1]
        assert server.inputs[1] == ["text"]


def test_the_error_for_a_wrong_dim_has_both_numbers():
    """After one probe, without further requests."""
    with serving(lambda n, texts: right_answer(texts, dim=5)) as server, embedder_of(server) as embedder:
        for _ in range(5):
            with pytest.raises(
                WrongDimension, match=r"5 numbers instead of 8, the value of embeddings\.dense\.dim"
            ):
                embedder.embed(TEXTS)

        assert [len(texts) for texts in server.inputs] == [len(TEXTS), 1]


def test_a_single_vector_of_the_wrong_length_fails_only_its_text():
    """Even the first response does not prove that `dim` is wrong; the probe does."""
    script: VectorScript = lambda n, texts: right_answer(texts, dim=1 if "bad" in texts else 8)  # noqa: E731
    with serving(script) as server, embedder_of(server, batch_size=1) as embedder:
        with pytest.raises(VectorUnusable, match="1 number"):
            embedder.embed(["bad"])

        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


def test_a_fault_of_the_settings_is_forgotten_after_a_while():
    """The key can become valid."""
    pace = replace(QUICK, fault_seconds=0.0)
    with serving(first(2, refused(401))) as server, embedder_of(server, pace) as embedder:
        with pytest.raises(EndpointDenied):
            embedder.embed(TEXTS)

        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


def test_errors_do_not_contain_the_key():
    """Some servers quote it."""
    reply = Reply(b'{"error": {"message": "no model for key secret-key\\n  at all"}}', 404)
    with (
        serving(lambda n, texts: reply) as server,
        embedder_of(server, environ={"KEY": "secret-key"}, api_key_env="KEY") as embedder,
        pytest.raises(EndpointRefused, match="no model for key … at all") as caught,
    ):
        embedder.embed(["a"])

    assert "secret" not in str(caught.value)


def _fails(embedder: RemoteEmbedder, *texts: str) -> None:
    with pytest.raises(EndpointBusy) as caught:
        embedder.embed(texts)
    assert caught.value.retryable


@pytest.mark.parametrize("status", [429, 503])
def test_a_pause_applies_to_later_requests_after_one_has_failed(status: int):
    """Otherwise they would all be sent at once, and fail."""
    pace = replace(QUICK, max_retry_after_seconds=0.4)
    script = first(1, refused(status, Retry_After="60"))
    with serving(script) as server, embedder_of(server, pace, retries=0, batch_size=1) as embedder:
        _fails(embedder, "a")
        began = time.monotonic()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: embedder.embed([f"text {n}"]), range(4)))

        assert time.monotonic() - began > 0.3


@pytest.mark.parametrize("asked", ["0", "-5", "Wed, 21 Oct 2015 07:28:00 GMT"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_pause_of_zero_does_not_use_up_all_attempts_at_once(status: int, asked: str):
    """The growing pauses are the minimum."""
    pace = replace(QUICK, first_pause_seconds=0.1, max_pause_seconds=1.0)
    script = first(3, refused(status, Retry_After=asked))
    with serving(script) as server, embedder_of(server, pace, retries=3) as embedder:
        began = time.monotonic()
        embedder.embed(["a"])

        assert time.monotonic() - began > 0.1 + 0.2 + 0.4


def test_an_endpoint_that_asks_for_fewer_requests_is_not_down():
    """After a failed request, the next one has all its attempts."""
    with serving(first(5, refused(429))) as server, embedder_of(server, retries=2) as embedder:
        _fails(embedder, "a")
        embedder.embed(["b"])

        assert server.inputs == [["a"]] * 3 + [["b"]] * 3


@pytest.mark.parametrize("status", [429, 503])
def test_an_endpoint_that_only_asks_for_pauses_does_not_block_a_stage(status: int):
    """After a while texts fail without a request or a wait, until the endpoint recovers."""
    pace = replace(QUICK, max_retry_after_seconds=0.1, max_silence_seconds=0.3, fault_seconds=1.0)
    state = {"is_busy": True}
    script: VectorScript = lambda n, texts: (  # noqa: E731
        refused(status, Retry_After="60") if state["is_busy"] else None
    )
    with serving(script) as server, embedder_of(server, pace, retries=1) as embedder:
        began = time.monotonic()
        for n in range(100):
            _fails(embedder, f"text {n}")
        assert time.monotonic() - began < 100 * 0.1 / 2
        assert len(server.asked) < 30

        state["is_busy"] = False
        time.sleep(1.1)
        embedder.embed(["a"])


def test_a_pause_for_one_text_does_not_delay_others():
    """The endpoint fails on that text only."""
    pace = replace(QUICK, max_retry_after_seconds=2.0)
    script = poisoned(refused(500, Retry_After="2"), "bad")
    with (
        serving(script) as server,
        embedder_of(server, pace, retries=1, batch_size=1) as embedder,
        ThreadPoolExecutor(1) as pool,
    ):
        poison = pool.submit(embedder.embed, ["bad"])
        while not server.asked:
            time.sleep(0.005)
        began = time.monotonic()
        embedder.embed(["good"])
        assert time.monotonic() - began < 1.5
        assert poison.exception() is not None
