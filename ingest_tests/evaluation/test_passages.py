"""Where chunks stand in a text, and how much of the wanted passages they hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.evaluation.retrieval import TextIndex, passages_of, tokens_of

TEXT = "# Bees\n\nA *swarm* leaves in May. The old queen goes.\n\nA *swarm* leaves in May. The new one stays."
WANTED = "The old queen goes."


def test_recall_and_precision_count_the_tokens_that_both_have():
    """Five of five wanted tokens are found, and the six before them are read in vain."""
    start = TEXT.index(WANTED)
    chunk = "A swarm leaves in May. The old queen goes."

    passages = passages_of({"t": TEXT}, {"q": ("t", [(start, start + len(WANTED))])}, [("c", "t", chunk)])

    figures = passages.overlap("q", ["c"]).as_dict()
    assert figures == {"token_recall": 1.0, "token_precision": 5 / 11, "token_iou": 5 / 11}
    assert passages.aligned_share() == 1.0


CHINESE = "蜂群在五月离开。老蜂王走了,新蜂王留下。"


def test_a_chunk_of_a_script_without_spaces_is_counted_by_its_letters():
    """A clause is no word: three letters of it are wanted, and three are found among eight."""
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
def test_letters_stand_alone_where_no_space_ends_a_word(text: str, words: list[str]):
    """With the marks on them; words of other scripts stay whole beside them."""
    assert tokens_of(text).words == words


@given(st.text())
def test_only_blanks_belong_to_no_token(text: str):
    """So a span that is not blank wants something, wherever it begins."""
    assert "".join(tokens_of(text).words) == "".join(text.split())


@pytest.mark.parametrize("wanted", ["war", "swar", "arm", "swarm", "warm* lea"])
def test_a_span_inside_a_word_wants_the_word(wanted: str):
    """A chunk that holds the word answers it."""
    start = TEXT.index(wanted)

    passages = passages_of({"t": TEXT}, {"q": ("t", [(start, start + len(wanted))])}, [("c", "t", TEXT)])

    assert passages.overlap("q", ["c"]).as_dict()["token_recall"] == 1.0
    assert ("t", 4) in passages.wanted["q"]


def test_text_that_repeats_itself_is_found_in_order():
    """The second of two equal sentences is the second chunk's."""
    tokens = ["a", "b", "c", "d", "x"] * 20
    index = TextIndex(tokens)

    first, second = index.places_of(tokens[:50]), index.places_of(tokens[50:])

    assert first == list(range(50))
    assert second == list(range(50, 100))


def test_words_that_the_text_lacks_have_no_place():
    """They are read all the same: the share says how many."""
    passages = passages_of({"t": TEXT}, {}, [("c", "t", "A swarm leaves on Friday")])

    assert passages.aligned_share("t") == pytest.approx(3 / 5)


@given(st.lists(st.integers(0, 400), min_size=3, max_size=300), st.data())
def test_a_piece_of_a_text_is_found_whole(numbers, data):
    """Wherever it was cut."""
    tokens = [str(number) for number in numbers]
    start = data.draw(st.integers(0, len(tokens) - 3))
    end = data.draw(st.integers(start + 3, len(tokens)))

    places = TextIndex(tokens).places_of(tokens[start:end])

    assert [tokens[place] for place in places] == tokens[start:end]
