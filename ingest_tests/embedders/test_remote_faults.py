"""An endpoint that is busy, broken, or refuses everybody: what is tried again, and what all are told."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.batching import counting
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
def test_a_passing_fault_costs_a_retry(reply: Reply):
    """Told by status and shape, whatever the words are."""
    with serving(first(2, reply)) as server, embedder_of(server) as embedder, counting() as counts:
        if reply.status == 204:  # a success without an answer is no passing fault
            with pytest.raises(EndpointRefused, match="status 204"):
                embedder.embed(TEXTS)
            return
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
        assert (counts["requests"], counts["request_retries"]) == (3, 2)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refused(429), EndpointBusy, "status 429.*lower embeddings.dense.remote.max_in_flight"),
        (
            Reply(b'{"error": {"message": "Slow\\n down."}}', 429),
            EndpointBusy,
            "status 429: Slow down; lower .*, or run again later. It was asked 3 times.$",
        ),
        (Reply(b'{"message": "Out of memory"}', 503), EndpointBusy, "503: Out of memory; see the server"),
        (
            Reply(b'{"error": {"message": "No model loaded"}}'),
            EndpointAnswerUnusable,
            "status 200 and no vectors: No model loaded; check embeddings.dense.model",
        ),
        (refused(503, Retry_After="0"), EndpointBusy, "status 503"),
        (refused(500), EndpointBusy, "status 500"),
        (Reply(b"", 0), EndpointUnreachable, "broke the connection off"),
        (Reply(b""), EndpointAnswerUnusable, "status 200 and no vectors; check"),
        (Reply(b"<p>"), EndpointAnswerUnusable, "status 200 and no vectors; check"),
        (Reply(b'{"result": 1}'), EndpointAnswerUnusable, "status 200 and no vectors; check"),
        (Reply(b'{"data": [' + b" " * 3_000_000 + b"]}"), EndpointAnswerUnusable, "no vectors; check"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_fault_that_stays_ends_after_the_attempts_allowed(reply: Reply, kind: type[ItemError], words: str):
    """The error names the address, and says whether it is worth trying again."""
    with serving(lambda n, texts: reply) as server, embedder_of(server, retries=2) as embedder:
        with pytest.raises(kind, match=words) as caught:
            embedder.embed(TEXTS)

        assert server.url in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "index" not in caught.value.detail, "no text is to blame"
        no_texts_doing = reply.status == 429 or "Retry-After" in reply.headers
        assert server.inputs[3:] == ([] if no_texts_doing else [["text"]])


def test_an_endpoint_that_is_down_costs_one_attempt_a_request_until_it_recovers():
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


def test_a_server_that_hangs_is_a_time_out():
    """Also one that drips."""
    with (
        serving(lambda n, texts: Reply(b"", seconds=0.4)) as server,
        embedder_of(server, timeout_seconds=0.1, retries=1) as embedder,
    ):
        with pytest.raises(EndpointTimeout, match=r"within 0\.1 s"):
            embedder.embed(["a"])

        assert server.inputs == [["a"], ["a"], ["text"]]


def test_nobody_there_is_unreachable():
    """A refused connection is a passing fault: servers start and stop."""
    with serving() as server:
        pass
    says = r"cannot be reached, or broke .* \(.*\); start it, see .*\.url\.$"
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
            "status 404.* also for a harmless text; check embeddings.dense: model",
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
        (refused(400), EndpointRefused, "also for a harmless text"),
        (
            Reply(b'{"error": {"code": "insufficient_quota"}}', 429),
            EndpointDenied,
            "no credit left",
        ),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
def test_what_no_text_would_mend_is_asked_for_once_more_with_a_harmless_one(
    reply: Reply, kind: type[ItemError], words: str
):
    """No storm: whoever waits or comes soon is told the same without a request."""
    with serving(lambda n, texts: reply) as server, embedder_of(server) as embedder:
        for _ in range(5):
            with pytest.raises(kind, match=words) as caught:
                embedder.embed(TEXTS)
            assert not caught.value.retryable
        assert [len(texts) for texts in server.inputs] == [len(TEXTS), 1]
        assert server.inputs[1] == ["text"]


def test_a_dim_that_the_model_does_not_give_is_told_once_with_both_numbers():
    """A harmless text has the same length, and nobody else asks."""
    with serving(lambda n, texts: right_answer(texts, dim=5)) as server, embedder_of(server) as embedder:
        for _ in range(5):
            with pytest.raises(
                WrongDimension, match=r"5 numbers instead of 8, the value of embeddings\.dense\.dim"
            ):
                embedder.embed(TEXTS)

        assert [len(texts) for texts in server.inputs] == [len(TEXTS), 1]


def test_a_first_vector_of_a_wrong_length_is_its_texts_trouble():
    """One answer tells nothing of the dim, be it the first: a harmless text does."""
    script: VectorScript = lambda n, texts: right_answer(texts, dim=1 if "bad" in texts else 8)  # noqa: E731
    with serving(script) as server, embedder_of(server, batch_size=1) as embedder:
        with pytest.raises(VectorUnusable, match="1 number"):
            embedder.embed(["bad"])

        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


def test_a_verdict_does_not_stand_for_ever():
    """The key may be let in meanwhile."""
    pace = replace(QUICK, verdict_seconds=0.0)
    with serving(first(2, refused(401))) as server, embedder_of(server, pace) as embedder:
        with pytest.raises(EndpointDenied):
            embedder.embed(TEXTS)

        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


def test_errors_do_not_tell_the_key():
    """Servers quote it."""
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
def test_a_pause_is_waited_out_also_after_a_request_was_given_up(status: int):
    """Else all that comes would be sent at once, and fail."""
    pace = replace(QUICK, longest_asked_seconds=0.4)
    script = first(1, refused(status, Retry_After="60"))
    with serving(script) as server, embedder_of(server, pace, retries=0, batch_size=1) as embedder:
        _fails(embedder, "a")
        began = time.monotonic()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: embedder.embed([f"text {n}"]), range(4)))

        assert time.monotonic() - began > 0.3


@pytest.mark.parametrize("asked", ["0", "-5", "Wed, 21 Oct 2015 07:28:00 GMT"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_pause_of_no_length_does_not_spend_all_attempts_at_once(status: int, asked: str):
    """The growing pauses are the least that is waited."""
    pace = replace(QUICK, first_pause_seconds=0.1, longest_pause_seconds=1.0)
    script = first(3, refused(status, Retry_After=asked))
    with serving(script) as server, embedder_of(server, pace, retries=3) as embedder:
        began = time.monotonic()
        embedder.embed(["a"])

        assert time.monotonic() - began > 0.1 + 0.2 + 0.4


def test_an_endpoint_that_asks_for_fewer_requests_is_not_down():
    """After one request was given up, the next has all its attempts."""
    with serving(first(5, refused(429))) as server, embedder_of(server, retries=2) as embedder:
        _fails(embedder, "a")
        embedder.embed(["b"])

        assert server.inputs == [["a"]] * 3 + [["b"]] * 3


@pytest.mark.parametrize("status", [429, 503])
def test_an_endpoint_that_asks_for_pauses_for_ever_does_not_hold_a_stage_for_ever(status: int):
    """After a while the rest fails without a request or a wait; when it answers again, so does this."""
    pace = replace(QUICK, longest_asked_seconds=0.1, longest_silence_seconds=0.3, verdict_seconds=1.0)
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


def test_a_pause_for_one_text_is_nobody_elses():
    """It is that text at which the endpoint fails."""
    pace = replace(QUICK, longest_asked_seconds=2.0)
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
