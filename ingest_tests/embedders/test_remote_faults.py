"""The `openai` provider and an endpoint that is busy, broken, or refuses everybody."""

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
from ingest_tests.embedders.vector_server import (
    QUICK,
    TEXTS,
    VectorScript,
    embedder_of,
    first,
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
        (Reply(b"", 0), EndpointUnreachable, "closed the connection before its answer was complete"),
        (Reply(b""), EndpointAnswerUnusable, "status 200 and no vectors; check"),
        (Reply(b"<p>"), EndpointAnswerUnusable, "status 200 and no vectors; check"),
        (Reply(b'{"result": 1}'), EndpointAnswerUnusable, "status 200 and no vectors; check"),
        (Reply(b'{"data": [' + b" " * 3_000_000 + b"]}"), EndpointAnswerUnusable, "more than"),
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
    says = r"cannot be reached \(.*\); start it, or check .*\.url\. It was asked 2 times\.$"
    with embedder_of(server, retries=1) as embedder, pytest.raises(EndpointUnreachable, match=says):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refused(401), EndpointDenied, "remote.api_key_env"),
        (refused(403), EndpointDenied, "remote.api_key_env"),
        (refused(404), EndpointRefused, "check embeddings.dense.remote.url and embeddings.dense.model"),
        (refused(405), EndpointRefused, "status 405"),
        (
            refused(301, Location="http://127.0.0.1:9/v2?key=x"),
            EndpointRefused,
            "status 301.*: it redirects to http://127.0.0.1:9/v2, .* set embeddings.dense.remote.url",
        ),
        (
            refused(308, Location="/v2/embeddings"),
            EndpointRefused,
            "it redirects to http://127.0.0.1:[0-9]+/v2/embed",
        ),
        (refused(501), EndpointRefused, "status 501"),
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
