"""The `openai` provider and what comes back: whose vector is whose, and whatever is no vector."""

import json

import pytest

from ingest_assets.embedders.batching import counting
from ingest_assets.embedders.errors import EndpointAnswerUnusable, VectorUnusable
from ingest_assets.embedders.remote import HARMLESS
from ingest_tests.embedders.vector_server import TEXTS, answer_of, embedder_of, items_of, serving, vectors_of
from ingest_tests.parsing.vision_server import Reply


def test_shuffled_answers_are_understood():
    """A server may answer in any order, as long as it says which vector is whose."""
    with (
        serving(lambda n, texts: answer_of(items_of(texts)[::-1])) as server,
        embedder_of(server) as embedder,
    ):
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


def test_an_answer_without_numbers_is_taken_in_order():
    """Some servers leave `index` out."""

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
        ([10**400] * 8, "no list of numbers"),
        ([[1.0]] * 8, "no list of numbers"),
        (None, "no list of numbers"),
        ({}, "no list of numbers"),
        ("AAAA", "no list of numbers"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_vector_that_is_none_fails_alone(embedding: object, words: str):
    """The batch is divided; `contract` errors name what came back and whose it is."""

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


def test_a_vector_that_comes_at_the_second_time_is_good():
    """The batch is asked for once more before it is divided."""

    def script(number: int, texts: list[str]) -> Reply | None:
        items = items_of(texts)
        items[0]["embedding"] = None
        return answer_of(items) if number == 0 else None

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

    assert [len(texts) for texts in server.inputs] == [4, 1, 4]


def test_a_model_that_gives_no_numbers_for_any_text_is_the_endpoints_fault():
    """A harmless text tells."""

    def script(number: int, texts: list[str]) -> Reply:
        return answer_of([{**item, "embedding": [None] * 8} for item in items_of(texts)])

    with serving(script) as server, embedder_of(server) as embedder:
        with pytest.raises(EndpointAnswerUnusable, match="not finite"):
            embedder.embed(TEXTS)

        assert server.inputs[1:] == [[HARMLESS]]


@pytest.mark.parametrize("kept", [[0, 1, 2], [1, 2, 3], [], [0, 1, 2, 3, 4], [0, 1, 2, 3, 3]], ids=str)
def test_a_list_of_another_length_is_not_believed(kept: list[int]):
    """Halves are asked for instead, whatever indices it has."""

    def script(number: int, texts: list[str]) -> Reply | None:
        items = items_of([*texts, "more"])
        return answer_of([items[place] for place in kept]) if len(texts) == 4 else None

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

    assert [len(texts) for texts in server.inputs] == [4, 1, 4, 2, 2]


def test_a_server_that_leaves_a_text_out_and_counts_anew_mixes_nothing_up():
    """Its numbers look right, and every vector after the gap is another text's."""

    def script(number: int, texts: list[str]) -> Reply:
        return answer_of(items_of([text for text in texts if text != "two words"]))

    with serving(script) as server, embedder_of(server) as embedder:
        with pytest.raises(VectorUnusable, match="0 vectors for 1 texts") as caught:
            embedder.embed(TEXTS)
        assert caught.value.detail["index"] == 1
        others = [text for text in TEXTS if text != "two words"]
        assert (embedder.embed(others) == vectors_of(others)).all()


@pytest.mark.parametrize("index", [0, 99, -1, "0"])
def test_numbers_that_cannot_be_are_not_believed(index: object):
    """With two texts and more it is unknown whose the vectors are."""

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
def test_usage_that_is_nonsense_is_not_counted(usage: object, tokens: int):
    """A counter is a convenience."""

    def script(number: int, texts: list[str]) -> Reply:
        return Reply(json.dumps({"data": items_of(texts), "usage": usage}).encode())

    with serving(script) as server, embedder_of(server) as embedder, counting() as counts:
        embedder.embed(["a"])

        assert counts.get("tokens", 0) == tokens
