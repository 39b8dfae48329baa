"""The `openai` provider and the pauses that an endpoint asks for: they are kept, and they end."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ingest_assets.embedders.errors import EndpointBusy
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_tests.embedders.vector_server import QUICK, VectorScript, embedder_of, first, poisoned, serving
from ingest_tests.parsing.vision_server import refused


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
