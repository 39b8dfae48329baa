"""A text that the endpoint refuses, or at which it fails: it costs nobody else, and is named."""

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
from ingest_assets.embedders.remote import HARMLESS, RemoteEmbedder
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
    """The errors of texts that share a request; the others have their vectors."""
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
def test_a_text_at_which_the_endpoint_fails_costs_nobody_else(reply: Reply):
    """The others have their vectors, after few requests more."""
    with serving(poisoned(reply, "text 05")) as server:
        failures = _failures(server, TEXTS[:16], retries=2)

    assert failures.keys() == {"text 05"}
    assert isinstance(failures["text 05"], TextUnanswered)
    assert server.url in str(failures["text 05"])
    assert len(server.asked) == 3 + 1 + 1 + 2 * 4 + 1, "attempts, harmless, again, halves, harmless"


def test_such_a_text_is_named_and_not_tried_again_in_this_run():
    """Also by an endpoint that has given vectors before, and alone in its request."""
    says = "status 500.* It fails at this text alone: a harmless one is answered.$"
    with serving(poisoned(refused(500), "bad")) as server, embedder_of(server, retries=0) as embedder:
        embedder.embed(["warm up"])
        for texts in (["one", "two", "bad"], ["bad"]):
            with pytest.raises(TextUnanswered, match=says) as caught:
                embedder.embed(texts)

            assert caught.value.detail["index"] == texts.index("bad")
            assert (caught.value.category, caught.value.retryable) == ("provider", False)


def test_several_such_texts_are_each_found():
    """Requests grow with their number."""
    bad = {"text 03", "text 30", "text 63"}
    with serving(poisoned(refused(500), *bad)) as server:
        failures = _failures(server, TEXTS, retries=1)

    assert failures.keys() == bad
    assert {type(error) for error in failures.values()} == {TextUnanswered}
    assert len(server.asked) < 2 + 1 + 1 + 3 * (2 * 6 + 1)


def test_a_text_that_hangs_is_found_in_one_attempt_a_piece():
    """A time-out is a minute."""
    with (
        serving(poisoned(Reply(b"", seconds=0.4), "text 05")) as server,
        embedder_of(server, timeout_seconds=0.2, retries=1) as embedder,
    ):
        with pytest.raises(TextUnanswered, match=r"within 0\.2 s") as caught:
            embedder.embed(TEXTS[:8])

        assert caught.value.detail["index"] == 5
        assert sum("text 05" in texts for texts in server.inputs) == 2 + 1 + 3


def test_a_search_in_which_all_hangs_comes_to_an_end():
    """The rest is told that the endpoint did not answer, and may be tried again."""
    script: VectorScript = lambda n, texts: None if texts == [HARMLESS] else Reply(b"", seconds=0.5)  # noqa: E731
    with serving(script) as server:
        failures = _failures(server, TEXTS[:16], timeout_seconds=0.25, retries=0)

    assert {type(error) for error in failures.values()} == {TextUnanswered, EndpointTimeout}
    assert isinstance(failures["text 15"], EndpointTimeout)
    assert sum(texts != [HARMLESS] for texts in server.inputs) <= 1 + 12, "and not twice as many as texts"


def test_neighbours_keep_their_patience_beside_such_a_text():
    """It says nothing of the endpoint, neither while it is looked into nor afterwards."""
    looked_into = threading.Event()
    met: set[str] = set()

    def script(number: int, texts: list[str]) -> Reply | None:
        if texts == [HARMLESS]:
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
    """A proxy answers 502 to all, then."""
    state = {"is_dead": False}

    def script(number: int, texts: list[str]) -> Reply | None:
        is_dead = state["is_dead"]
        state["is_dead"] |= texts == [HARMLESS]
        return refused(502) if is_dead or "text 05" in texts else None

    with serving(script) as server:
        failures = _failures(server, TEXTS[:8], retries=1)

    assert len(failures) == 8
    assert all(isinstance(error, EndpointBusy) and error.retryable for error in failures.values())
    assert server.inputs[-1] == [HARMLESS]
    assert len(server.asked) == 2 + 1 + 1 + 3 + 1


def test_an_endpoint_that_comes_back_is_asked_for_the_whole_batch():
    """Nothing was wrong with any text, nor with their number."""
    script: VectorScript = lambda n, texts: refused(502) if n < 2 else None  # noqa: E731
    with serving(script) as server, embedder_of(server, retries=1) as embedder:
        for _ in range(2):
            assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

        assert [len(texts) for texts in server.inputs] == [64, 64, 1, 64, 64]


def test_a_pause_that_is_asked_for_during_the_search_is_waited_out():
    """One attempt is for faults that may be a text's."""
    refusals = iter([refused(429), refused(429)])

    def script(number: int, texts: list[str]) -> Reply | None:
        if "text 05" in texts:
            return refused(500)
        return next(refusals, None) if len(texts) == 2 else None

    with serving(script) as server:
        assert set(_failures(server, TEXTS[:8], retries=2)) == {"text 05"}


def test_a_piece_that_fails_by_chance_teaches_nothing():
    """Requests stay as large as they may be."""
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


def test_a_batch_that_is_too_much_for_the_endpoint_teaches_the_size():
    """It says 500 when its memory is not enough; the second batch is asked for in pieces that it takes."""
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
def test_a_text_that_a_gateway_blocks_costs_nobody_else(reply: Reply, is_first: bool):
    """It is named, and the next document has its vectors at once."""
    says = f"status {reply.status}.* refuses this text alone: a harmless one is answered"
    with serving(poisoned(reply, "bad")) as server, embedder_of(server) as embedder:
        if not is_first:
            embedder.embed(["warm up"])
        with pytest.raises(TextRefused, match=says) as caught:
            embedder.embed(["one", "two", "bad", "three"])

        assert caught.value.detail["index"] == 2
        assert "\n" not in str(caught.value)
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
        assert sum(texts == [HARMLESS] for texts in server.inputs) == 2, "before the search, and at its end"


@pytest.mark.parametrize("status", [401, 404])
def test_a_stray_refusal_costs_two_requests_and_no_text(status: int):
    """During a rollout an old server may answer once."""
    with serving(first(1, refused(status))) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

        assert _asked(server) == [sorted(TEXTS), [HARMLESS], sorted(TEXTS)]


def test_a_key_that_is_withdrawn_half_way_is_told_to_all():
    """Vectors were given before, and none will be."""
    script: VectorScript = lambda n, texts: refused(401) if n else None  # noqa: E731
    with serving(script) as server, embedder_of(server) as embedder:
        embedder.embed(["warm up"])
        for _ in range(3):
            with pytest.raises(EndpointDenied, match=r"remote\.api_key_env\.$"):
                embedder.embed(TEXTS)

        assert _asked(server)[1:] == [sorted(TEXTS), [HARMLESS]]


def test_requests_that_meet_a_wrong_key_at_once_try_one_harmless_text():
    """The first finds out for the others."""
    together = threading.Barrier(4)

    def script(number: int, texts: list[str]) -> Reply:
        if texts != [HARMLESS]:
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

        assert sum(texts == [HARMLESS] for texts in server.inputs) == 1


def test_a_refusal_beside_which_the_endpoint_is_down_is_no_verdict():
    """Nobody knows what it would have said: it is worth trying again."""
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
def test_an_overload_is_no_texts_doing_where_a_pause_is_asked_for(reply: Reply, kind: type[ItemError]):
    """Without one, the gateway may have met its end at the text."""
    with (
        serving(poisoned(reply, "bad")) as server,
        embedder_of(server, retries=1) as embedder,
        pytest.raises(kind),
    ):
        embedder.embed(["one", "bad"])


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

        assert [len(texts) for texts in server.inputs] == [1, 8, 1, 8, 4, 4, 4, 4]
