"""Positions of chunks in a text, and their overlap with the wanted passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.evaluation.retrieval import TextIndex, passages_of, tokens_of

TEXT = "# Bees\n\nA *swarm* leaves in May. The old queen goes.\n\nA *swarm* leaves in May. The new one stays."
WANTED = "The old queen goes."


def test_recall_and_precision_count_common_tokens():
    """Five of five wanted tokens are found; the chunk has six others before them."""
    start = TEXT.index(WANTED)
    chunk = "A swarm leaves in May. The old queen goes."

    passages = passages_of({"t": TEXT}, {"q": ("t", [(start, start + len(WANTED))])}, [("c", "t", chunk)])

    figures = passages.overlap("q", ["c"]).as_dict()
    assert figures == {"token_recall": 1.0, "token_precision": 5 / 11, "token_iou": 5 / 11}
    assert passages.aligned_share() == 1.0


CHINESE = "蜂群在五月离开。老蜂王走了,新蜂王留下。"


def test_a_chunk_of_a_script_without_spaces_is_counted_by_letters():
    """Three letters of a clause are wanted; three are found among eight."""
    start = CHINESE.index("老蜂王")

    passages = passages_of(
        {"t": CHINESE}, {"q": ("t", [(start, start + 3)])}, [("c", "t", CHINESE[start - 3 : start + 5])]
    )

    figures = passages.overlap("q", ["c"]).as_dict()
    assert figures == {"token_recall": 1.0, "token_precision": 3 / 8, "token_iou": 3 / 8}
    assert passages.aligned_share() == 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5月のハチ群", ["5", "月", "の", "ハ", "チ", "群"]),
        ("ผึ้งงาน", ["ผึ้", "ง", "ง", "า", "น"]),
        ("GPT模型, 2024年", ["GPT", "模", "型", ",", "2024", "年"]),
        ("It's 40 m² – don\u02bct\x1c_x_", ["It", "'", "s", "40", "m²", "–", "don\u02bct", "_x_"]),
    ],
)
def test_letters_of_scripts_without_spaces_are_single_tokens(text: str, words: list[str]):
    """With their combining marks; words of other scripts next to them stay whole."""
    assert tokens_of(text).words == words


@given(st.text())
def test_only_whitespace_belongs_to_no_token(text: str):
    """So every span that is not blank has a token."""
    assert "".join(tokens_of(text).words) == "".join(text.split())


@pytest.mark.parametrize("span", ["war", "swar", "arm", "swarm", "warm* lea"])
def test_a_span_inside_a_word_counts_as_the_word(span: str):
    """A chunk with the word answers it."""
    start = TEXT.index(span)

    passages = passages_of({"t": TEXT}, {"q": ("t", [(start, start + len(span))])}, [("c", "t", TEXT)])

    assert passages.overlap("q", ["c"]).as_dict()["token_recall"] == 1.0
    assert ("t", 4) in passages.relevant["q"]


def test_repeated_text_is_matched_in_order():
    """The second of two equal sentences belongs to the second chunk."""
    tokens = ["a", "b", "c", "d", "x"] * 20
    index = TextIndex(tokens)

    first, second = index.places_of(tokens[:50]), index.places_of(tokens[50:])

    assert first == list(range(50))
    assert second == list(range(50, 100))


def test_words_that_are_not_in_the_text_have_no_place():
    """They lower the aligned share."""
    passages = passages_of({"t": TEXT}, {}, [("c", "t", "A swarm leaves on Friday")])

    assert passages.aligned_share("t") == pytest.approx(3 / 5)


@given(st.lists(st.integers(0, 400), min_size=3, max_size=300), st.data())
def test_every_token_of_a_piece_of_the_text_is_found(numbers, data):
    """At any start and end."""
    tokens = [str(number) for number in numbers]
    start = data.draw(st.integers(0, len(tokens) - 3))
    end = data.draw(st.integers(start + 3, len(tokens)))

    places = TextIndex(tokens).places_of(tokens[start:end])

    assert [tokens[place] for place in places] == tokens[start:end]
