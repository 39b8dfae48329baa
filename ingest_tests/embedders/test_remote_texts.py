"""Texts that the endpoint rejects or fails on: they are named, and all others get their vectors."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.errors import (
    EndpointBusy,
    EndpointDenied,
    EndpointTimeout,
    TextRefused,
    TextUnanswered,
)
from ingest_assets.embedders.remote import PROBE_TEXT, RemoteEmbedder
from ingest_tests.embedders.vector_server import (
    QUICK,
    VectorScript,
    VectorServer,
    embedder_of,
    first,
    options_for,
    poisoned,
    right_answer,
    serving,
    vector_of,
    vectors_of,
)
from ingest_tests.parsing.vision_server import Reply, refused

TEXTS = [f"text {n:02}" for n in range(64)]


def _failures(server: VectorServer, texts: list[str], **remote: Any) -> dict[str, ItemError]:
    """Embed texts in one request; return their errors, and check the vectors of the others."""
    embedder = RemoteEmbedder(options_for(server.url, **remote), {}, QUICK)
    failures: dict[str, ItemError] = {}
    for text, outcome in zip(texts, embedder.embed_batch(texts), strict=True):
        if isinstance(outcome, ItemError):
            failures[text] = outcome
        else:
            assert (outcome.vector == vector_of(text)).all()
    embedder.close()
    return failures


@pytest.mark.parametrize(
    "reply",
    [
        refused(500),
        refused(502),
        refused(503),
        refused(529),
        refused(504, Retry_After="0"),
        Reply(b"", 0),
        Reply(b""),
        Reply(b'{"data": null}'),
        Reply(b'{"error": {"message": "no such token"}}'),
    ],
    ids=lambda reply: f"{reply.status} {reply.body[:12]!r}",
)
def test_a_text_that_the_endpoint_fails_on_fails_alone(reply: Reply):
    """The others get their vectors with few more requests."""
    with serving(poisoned(reply, "text 05")) as server:
        failures = _failures(server, TEXTS[:16], retries=2)

    assert failures.keys() == {"text 05"}
    assert isinstance(failures["text 05"], TextUnanswered)
    assert server.url in str(failures["text 05"])
    assert len(server.asked) == 3 + 1 + 1 + 2 * 4 + 1, "attempts, harmless, again, halves, harmless"


def test_a_text_that_the_endpoint_fails_on_is_named_and_not_retried_in_this_run():
    """Also after earlier successes, and if it is alone in its request."""
    says = "status 500.* fails on this text only: a test text succeeded.$"
    with serving(poisoned(refused(500), "bad")) as server, embedder_of(server, retries=0) as embedder:
        embedder.embed(["warm up"])
        for texts in (["one", "two", "bad"], ["bad"]):
            with pytest.raises(TextUnanswered, match=says) as caught:
                embedder.embed(texts)

            assert caught.value.detail["index"] == texts.index("bad")
            assert (caught.value.category, caught.value.retryable) == ("provider", False)


def test_several_failing_texts_are_each_found():
    """The number of requests grows with theirs."""
    bad = {"text 03", "text 30", "text 63"}
    with serving(poisoned(refused(500), *bad)) as server:
        failures = _failures(server, TEXTS, retries=1)

    assert failures.keys() == bad
    assert {type(error) for error in failures.values()} == {TextUnanswered}
    assert len(server.asked) < 2 + 1 + 1 + 3 * (2 * 6 + 1)


def test_a_text_that_hangs_is_found_with_one_attempt_per_piece():
    """A timeout takes a minute."""
    with (
        serving(poisoned(Reply(b"", seconds=0.4), "text 05")) as server,
        embedder_of(server, timeout_seconds=0.2, retries=1) as embedder,
    ):
        with pytest.raises(TextUnanswered, match=r"within 0\.2 s") as caught:
            embedder.embed(TEXTS[:8])

        assert caught.value.detail["index"] == 5
        assert sum("text 05" in texts for texts in server.inputs) == 2 + 1 + 3


def test_a_search_in_which_every_request_hangs_ends():
    """The remaining texts get a timeout, which is retryable."""
    script: VectorScript = lambda n, texts: None if texts == [PROBE_TEXT] else Reply(b"", seconds=0.5)  # noqa: E731
    with serving(script) as server:
        failures = _failures(server, TEXTS[:16], timeout_seconds=0.25, retries=0)

    assert {type(error) for error in failures.values()} == {TextUnanswered, EndpointTimeout}
    assert isinstance(failures["text 15"], EndpointTimeout)
    assert sum(texts != [PROBE_TEXT] for texts in server.inputs) <= 1 + 12, "and not twice as many as texts"


def test_other_texts_are_retried_during_and_after_the_search():
    """The failing text says nothing about the endpoint."""
    looked_into = threading.Event()
    met: set[str] = set()

    def script(number: int, texts: list[str]) -> Reply | None:
        if texts == [PROBE_TEXT]:
            looked_into.set()
            return replace(right_answer(texts), seconds=0.2)
        if "bad" in texts:
            return refused(500)
        is_new = not met & set(texts)
        met.update(texts)
        return refused(503) if is_new else None

    with (
        serving(script) as server,
        embedder_of(server, retries=1, batch_size=1) as embedder,
        ThreadPoolExecutor(1) as pool,
    ):
        poison = pool.submit(embedder.embed, ["bad"])
        assert looked_into.wait(5)
        embedder.embed(["meanwhile"])
        with pytest.raises(TextUnanswered):
            poison.result()
        embedder.embed(["afterwards"])


def test_no_text_is_blamed_when_the_endpoint_dies_during_the_search():
    """A proxy then answers 502 to all."""
    state = {"is_dead": False}

    def script(number: int, texts: list[str]) -> Reply | None:
        is_dead = state["is_dead"]
        state["is_dead"] |= texts == [PROBE_TEXT]
        return refused(502) if is_dead or "text 05" in texts else None

    with serving(script) as server:
        failures = _failures(server, TEXTS[:8], retries=1)

    assert len(failures) == 8
    assert all(isinstance(error, EndpointBusy) and error.retryable for error in failures.values())
    assert server.inputs[-1] == [PROBE_TEXT]
    assert len(server.asked) == 2 + 1 + 1 + 3 + 1


def test_after_a_recovery_the_whole_batch_is_sent_again():
    """No text was wrong, nor was their number."""
    script: VectorScript = lambda n, texts: refused(502) if n < 2 else None  # noqa: E731
    with serving(script) as server, embedder_of(server, retries=1) as embedder:
        for _ in range(2):
            assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

        assert [len(texts) for texts in server.inputs] == [64, 64, 1, 64, 64]


def test_a_pause_during_the_search_is_respected():
    """Only faults that a text may have caused are not retried."""
    refusals = iter([refused(429), refused(429)])

    def script(number: int, texts: list[str]) -> Reply | None:
        if "text 05" in texts:
            return refused(500)
        return next(refusals, None) if len(texts) == 2 else None

    with serving(script) as server:
        assert set(_failures(server, TEXTS[:8], retries=2)) == {"text 05"}


def test_a_random_failure_during_the_search_does_not_shrink_batches():
    """Later requests keep their size."""
    has_failed: list[bool] = []

    def script(number: int, texts: list[str]) -> Reply | None:
        if len(texts) == 2 and not has_failed:
            has_failed.append(True)
            return refused(500)
        return refused(500) if "text 05" in texts else None

    with serving(script) as server, embedder_of(server, retries=0) as embedder:
        with pytest.raises(TextUnanswered):
            embedder.embed(TEXTS[:8])
        before = len(server.asked)
        embedder.embed(TEXTS[8:16])

        assert [len(texts) for texts in server.inputs[before:]] == [8]


def test_a_batch_that_exceeds_the_endpoints_memory_shrinks_later_ones():
    """It answers 500; the second batch is sent in pieces that it accepts."""
    script: VectorScript = lambda n, texts: refused(500) if len(texts) > 4 else None  # noqa: E731
    with serving(script) as server, embedder_of(server, retries=0) as embedder:
        for _ in range(2):
            assert (embedder.embed(TEXTS[:8]) == vectors_of(TEXTS[:8])).all()

        assert [len(texts) for texts in server.inputs] == [8, 1, 8, 4, 4, 4, 4]


def _asked(server: VectorServer) -> list[list[str]]:
    return [sorted(texts) for texts in server.inputs]


@pytest.mark.parametrize(
    "reply",
    [
        refused(401),
        refused(403),
        refused(404),
        refused(405),
        refused(302, Location="/blocked"),
    ],
    ids=lambda reply: f"{reply.status} {reply.headers.get('Location', '')}",
)
@pytest.mark.parametrize("is_first", [True, False], ids=["the first of all", "later"])
def test_a_text_that_a_gateway_blocks_fails_alone(reply: Reply, is_first: bool):
    """It is named, and the next document gets its vectors at once."""
    says = f"status {reply.status}.* rejects only this text: a test text succeeded"
    with serving(poisoned(reply, "bad")) as server, embedder_of(server) as embedder:
        if not is_first:
            embedder.embed(["warm up"])
        with pytest.raises(TextRefused, match=says) as caught:
            embedder.embed(["one", "two", "bad", "three"])

        assert caught.value.detail["index"] == 2
        assert "\n" not in str(caught.value)
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
        assert sum(texts == [PROBE_TEXT] for texts in server.inputs) == 2, "before the search, and at its end"


@pytest.mark.parametrize("status", [401, 404])
def test_a_single_rejection_costs_two_requests_and_no_text(status: int):
    """During a rollout an old server can answer once."""
    with serving(first(1, refused(status))) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

        assert _asked(server) == [sorted(TEXTS), [PROBE_TEXT], sorted(TEXTS)]


def test_a_key_that_is_withdrawn_during_a_run_fails_all_texts():
    """Even after earlier successes."""
    script: VectorScript = lambda n, texts: refused(401) if n else None  # noqa: E731
    with serving(script) as server, embedder_of(server) as embedder:
        embedder.embed(["warm up"])
        for _ in range(3):
            with pytest.raises(EndpointDenied, match=r"remote\.api_key_env\.$"):
                embedder.embed(TEXTS)

        assert _asked(server)[1:] == [sorted(TEXTS), [PROBE_TEXT]]


def test_concurrent_requests_with_a_wrong_key_share_one_probe():
    """The first sends it for the others."""
    together = threading.Barrier(4)

    def script(number: int, texts: list[str]) -> Reply:
        if texts != [PROBE_TEXT]:
            together.wait(5)
        return refused(401)

    def fails(embedder: RemoteEmbedder, text: str) -> None:
        with pytest.raises(EndpointDenied):
            embedder.embed([text])

    with (
        serving(script) as server,
        embedder_of(server, batch_size=1, max_in_flight=4) as embedder,
        ThreadPoolExecutor(4) as pool,
    ):
        list(pool.map(lambda text: fails(embedder, text), ["a", "b", "c", "d"]))

        assert sum(texts == [PROBE_TEXT] for texts in server.inputs) == 1


def test_a_rejection_is_retryable_if_the_probe_finds_the_endpoint_down():
    """Without a successful probe, no text is at fault."""
    script: VectorScript = lambda n, texts: (  # noqa: E731
        [refused(404), refused(502)][n] if n < 2 else None
    )
    with serving(script) as server, embedder_of(server) as embedder:
        with pytest.raises(EndpointBusy, match="status 502") as caught:
            embedder.embed(TEXTS)

        assert caught.value.retryable
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refused(503, Retry_After="0"), EndpointBusy),
        (refused(529, Retry_After="soon"), EndpointBusy),
        (refused(503), TextUnanswered),
        (refused(529), TextUnanswered),
    ],
    ids=["503 with a pause", "529 with a pause", "503", "529"],
)
def test_an_overload_with_a_pause_is_not_the_fault_of_a_text(reply: Reply, kind: type[ItemError]):
    """Without a pause, the text may have crashed the server behind a gateway."""
    with (
        serving(poisoned(reply, "bad")) as server,
        embedder_of(server, retries=1) as embedder,
        pytest.raises(kind),
    ):
        embedder.embed(["one", "bad"])


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_rejected_text_fails_alone(status: int):
    """The batch is split until the text is found; callers of other texts get their vectors."""
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


def test_a_batch_that_is_too_large_shrinks_later_ones():
    """The second batch is sent in pieces that the server accepts."""
    script: VectorScript = lambda n, texts: refused(413) if len(texts) > 4 else None  # noqa: E731
    texts = [f"text {n}" for n in range(8)]
    with serving(script) as server, embedder_of(server, batch_size=8) as embedder:
        embedder.embed(["warm up"])
        for _ in range(2):
            assert (embedder.embed(texts) == vectors_of(texts)).all()

        assert [len(texts) for texts in server.inputs] == [1, 8, 1, 8, 4, 4, 4, 4]
