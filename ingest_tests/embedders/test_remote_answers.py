"""Responses of an endpoint: assigning vectors to texts, and invalid vectors."""

import json

import pytest

from ingest_assets.embedders.batcher import collect_counts
from ingest_assets.embedders.errors import EndpointAnswerUnusable, VectorUnusable
from ingest_assets.embedders.remote import PROBE_TEXT
from ingest_tests.embedders.vector_server import TEXTS, answer_of, embedder_of, items_of, serving, vectors_of
from ingest_tests.parsing.vision_server import Reply


def test_vectors_are_assigned_by_index():
    """A server can return them in any order."""
    with (
        serving(lambda n, texts: answer_of(items_of(texts)[::-1])) as server,
        embedder_of(server) as embedder,
    ):
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


def test_vectors_without_an_index_are_taken_in_order():
    """Some servers omit `index`."""

    def script(number: int, texts: list[str]) -> Reply:
        return answer_of([{"embedding": item["embedding"]} for item in items_of(texts)])

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


@pytest.mark.parametrize(
    ("embedding", "words"),
    [
        ([1.0] * 7, "7 numbers instead of 8"),
        ([], "0 numbers instead of 8"),
        ([float("nan")] * 8, "not finite"),
        ([None] * 8, "not finite"),
        ([1e300] * 8, "not finite"),
        ([10**400] * 8, "not a list of numbers"),
        ([[1.0]] * 8, "not a list of numbers"),
        (None, "not a list of numbers"),
        ({}, "not a list of numbers"),
        ("AAAA", "not a list of numbers"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_an_invalid_vector_fails_only_its_text(embedding: object, words: str):
    """The batch is split; the `contract` error names the text and the fault."""

    def script(number: int, texts: list[str]) -> Reply:
        items = items_of(texts)
        for item, text in zip(items, texts, strict=True):
            if text == "bad":
                item["embedding"] = embedding
        return answer_of(items)

    with serving(script) as server, embedder_of(server) as embedder:
        with pytest.raises(VectorUnusable, match=words) as caught:
            embedder.embed(["good", "bad", "fine"])

        assert caught.value.category == "contract"
        assert caught.value.detail["index"] == 1
        assert (embedder.embed(["good", "fine"]) == vectors_of(["good", "fine"])).all()


def test_a_vector_that_is_valid_on_retry_is_used():
    """The batch is sent once more before it is split."""

    def script(number: int, texts: list[str]) -> Reply | None:
        items = items_of(texts)
        items[0]["embedding"] = None
        return answer_of(items) if number == 0 else None

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

    assert [len(texts) for texts in server.inputs] == [4, 1, 4]


def test_a_model_without_a_valid_vector_for_any_text_is_the_endpoints_fault():
    """A probe with a harmless text shows it."""

    def script(number: int, texts: list[str]) -> Reply:
        return answer_of([{**item, "embedding": [None] * 8} for item in items_of(texts)])

    with serving(script) as server, embedder_of(server) as embedder:
        with pytest.raises(EndpointAnswerUnusable, match="not finite"):
            embedder.embed(TEXTS)

        assert server.inputs[1:] == [[PROBE_TEXT]]


@pytest.mark.parametrize("indices", [[0, 1, 2], [1, 2, 3], [], [0, 1, 2, 3, 4], [0, 1, 2, 3, 3]], ids=str)
def test_a_list_of_the_wrong_length_is_rejected(indices: list[int]):
    """The batch is split instead, whatever indices the list has."""

    def script(number: int, texts: list[str]) -> Reply | None:
        items = items_of([*texts, "more"])
        return answer_of([items[place] for place in indices]) if len(texts) == 4 else None

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

    assert [len(texts) for texts in server.inputs] == [4, 1, 4, 2, 2]


def test_vectors_are_not_mixed_up_if_the_server_skips_a_text():
    """Its indices look right, but every vector after the gap belongs to another text."""

    def script(number: int, texts: list[str]) -> Reply:
        return answer_of(items_of([text for text in texts if text != "two words"]))

    with serving(script) as server, embedder_of(server) as embedder:
        with pytest.raises(VectorUnusable, match="0 vectors for 1 texts") as caught:
            embedder.embed(TEXTS)
        assert caught.value.detail["index"] == 1
        others = [text for text in TEXTS if text != "two words"]
        assert (embedder.embed(others) == vectors_of(others)).all()


@pytest.mark.parametrize("index", [0, 99, -1, "0"])
def test_invalid_indices_are_rejected(index: object):
    """With two or more texts the vectors cannot be assigned."""

    def script(number: int, texts: list[str]) -> Reply | None:
        return answer_of([{**item, "index": index} for item in items_of(texts)]) if len(texts) > 1 else None

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

    assert [len(texts) for texts in server.inputs] == [4, 1, 4, 2, 1, 1, 2, 1, 1]


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, 0),
        ([], 0),
        ({"prompt_tokens": "many"}, 0),
        ({"prompt_tokens": -1}, 0),
        ({"total_tokens": 7}, 7),
    ],
)
def test_invalid_usage_is_not_counted(usage: object, tokens: int):
    """A wrong counter must not fail a request."""

    def script(number: int, texts: list[str]) -> Reply:
        return Reply(json.dumps({"data": items_of(texts), "usage": usage}).encode())

    with serving(script) as server, embedder_of(server) as embedder, collect_counts() as counts:
        embedder.embed(["a"])

        assert counts.get("tokens", 0) == tokens
