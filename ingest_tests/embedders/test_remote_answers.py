"""The `openai` provider and what an endpoint answers: in whatever order, and with whatever is no vector."""

import numpy as np
import pytest

from ingest_assets.embedders.batching import counting
from ingest_assets.embedders.errors import VectorUnusable
from ingest_tests.embedders.vector_server import TEXTS, answer_of, embedder_of, items_of, serving, vectors_of
from ingest_tests.parsing.vision_server import Reply


def test_base64_and_shuffled_answers_are_understood():
    """A server may answer as it likes, as long as it says which vector is whose."""
    import base64

    def script(number: int, texts: list[str]) -> Reply:
        items = items_of(texts)[::-1]
        for item in items:
            item["embedding"] = base64.b64encode(np.float32(item["embedding"]).tobytes()).decode()
        return answer_of(items)

    with serving(script) as server, embedder_of(server) as embedder:
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
        ([float("nan")] * 8, "not finite"),
        ([1e300] * 8, "not finite"),
        ([10**400] * 8, "not finite"),
        ([None] * 8, "neither a list of numbers"),
        ([True] * 8, "neither a list of numbers"),
        ([[1.0]] * 8, "neither a list of numbers"),
        (["1"] * 8, "neither a list of numbers"),
        (None, "neither a list of numbers"),
        ({}, "neither a list of numbers"),
        ("!!", "invalid base64"),
        ("AAAA", "invalid base64"),
        ("", "0 numbers"),
    ],
    ids=repr,
)
def test_a_vector_that_is_none_is_asked_for_again_and_then_fails_alone(embedding: object, words: str):
    """`contract` errors name what came back and whose it is."""
    asked: list[list[str]] = []

    def script(number: int, texts: list[str]) -> Reply:
        asked.append(texts)
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
    assert sorted(map(sorted, asked)) == [["bad"], ["bad", "fine", "good"]]


def test_a_vector_that_comes_at_the_second_time_is_good():
    """Only the texts without one are asked for again."""

    def script(number: int, texts: list[str]) -> Reply | None:
        items = items_of(texts)
        items[0]["embedding"] = None
        return answer_of(items) if number == 0 else None

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

    assert [len(texts) for texts in server.inputs] == [4, 1]


@pytest.mark.parametrize("keep", [slice(0, 3), slice(1, 4), slice(0, 0)], ids=["last", "first", "all"])
def test_a_short_list_is_not_believed(keep: slice):
    """Halves are asked for instead, whatever indices it has."""
    with (
        serving(lambda n, texts: answer_of(items_of(texts)[keep]) if len(texts) == 4 else None) as server,
        embedder_of(server) as embedder,
    ):
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

    assert [len(texts) for texts in server.inputs] == [4, 2, 2]


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


@pytest.mark.parametrize("change", ["one more", "all the same", "past the end", "negative", "words"])
def test_numbers_that_cannot_be_are_not_believed(change: str):
    """Asked one by one, there is nothing to number."""

    def script(number: int, texts: list[str]) -> Reply:
        items = items_of(texts)
        if change == "one more":
            items += items_of(["more"])
        for item in items:
            wrong = {"all the same": 0, "past the end": 99, "negative": -1, "words": "0"}
            item["index"] = wrong.get(change, item["index"])
        return answer_of(items)

    with serving(script) as server, embedder_of(server) as embedder:
        if change == "all the same":
            assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
        else:
            with pytest.raises(VectorUnusable, match="vectors for 1 texts"):
                embedder.embed(TEXTS)


def test_usage_that_is_nonsense_is_not_counted():
    """A counter is a convenience too."""
    for usage in (None, [], {"prompt_tokens": "many"}, {"prompt_tokens": -1, "total_tokens": 7}):

        def script(number: int, texts: list[str], usage: object = usage) -> Reply:
            import json

            return Reply(json.dumps({"data": items_of(texts), "usage": usage}).encode())

        with serving(script) as server, embedder_of(server) as embedder, counting() as counts:
            embedder.embed(["a"])
            assert counts.get("tokens", 0) == (
                7 if isinstance(usage, dict) and "total_tokens" in usage else 0
            )
