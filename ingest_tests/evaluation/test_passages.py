"""Where chunks stand in a text, and how much of the wanted passages they hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.evaluation.alignment import TextIndex
from ingest_assets.evaluation.passages import passages_of

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
