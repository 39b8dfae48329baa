"""The `openai` provider and a refusal that sounds like everybody's: a harmless text tells whether it is."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.errors import EndpointBusy, EndpointDenied, TextRefused, TextUnanswered
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_tests.embedders.vector_server import (
    TEXTS,
    VectorScript,
    VectorServer,
    embedder_of,
    first,
    poisoned,
    serving,
    vectors_of,
)
from ingest_tests.parsing.vision_server import Reply, refused

HARMLESS = ["text"]


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
        refused(302, Location="http://[bad"),
        refused(501),
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
        assert sum(texts == HARMLESS for texts in server.inputs) == 2, "before the search, and at its end"


@pytest.mark.parametrize("status", [401, 404])
def test_a_stray_refusal_costs_two_requests_and_no_text(status: int):
    """During a rollout an old server may answer once."""
    with serving(first(1, refused(status))) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

        assert _asked(server) == [sorted(TEXTS), HARMLESS, sorted(TEXTS)]


def test_a_key_that_is_withdrawn_half_way_is_told_to_all():
    """Vectors were given before, and none will be."""
    script: VectorScript = lambda n, texts: refused(401) if n else None  # noqa: E731
    with serving(script) as server, embedder_of(server) as embedder:
        embedder.embed(["warm up"])
        for _ in range(3):
            with pytest.raises(EndpointDenied, match=r"remote\.api_key_env\.$"):
                embedder.embed(TEXTS)

        assert _asked(server)[1:] == [sorted(TEXTS), HARMLESS]


def test_requests_that_meet_a_wrong_key_at_once_try_one_harmless_text():
    """The first finds out for the others."""
    together = threading.Barrier(4)

    def script(number: int, texts: list[str]) -> Reply:
        if texts != HARMLESS:
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

        assert sum(texts == HARMLESS for texts in server.inputs) == 1


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
