"""Reading Markdown for comparison: words, headings and tables without markup."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.evaluation.markdown import Heading, common_length, read_markdown, sequence_ratio, words_of


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("a **bold** and *soft* ~~old~~ `code`", "a bold and soft old code"),
        ("file\\_name \\* \\#1", "file_name * #1"),
        ("R&amp;D: 1 &lt; 2", "R&D: 1 < 2"),
        ("see [the hive](https://example.org/a_(b)) now", "see the hive now"),
        ("before\n\n<!-- image -->\n\nafter", "before after"),
        ("![a drone](drone.png) flies", "a drone flies"),
        ("- one\n    - two\n- three", "one two three"),
        ("1. one\n2. two", "one two"),
        ("- [x] done", "[x] done"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("line  \nbreak", "line break"),
        ("Heading\n=======\n\ntext", "Heading text"),
        ("the area $$A=r$$ and $b$", "the area A=r and b"),
        ("it costs $5 or $6", "it costs $5 or $6"),
        ("<p>Some <b>bold</b> text.</p>", "Some bold text."),
        ("a<br>b", "a b"),
        ("> quoted", "quoted"),
    ],
)
def test_markup_is_not_part_of_the_words(marked: str, plain: str):
    """Only the text counts."""
    assert read_markdown(marked).words == read_markdown(plain).words


def test_padded_and_compact_tables_are_the_same():
    """Docling writes both."""
    padded = "| month   | task   |\n|---------|--------|\n| March   |        |\n"
    compact = "| month | task |\n| - | - |\n| March |  |"

    assert read_markdown(padded) == read_markdown(compact)
    assert read_markdown(padded).tables == ((("month", "task"), ("March", "")),)


def test_an_html_table_is_a_table():
    """Markdown written by people contains them."""
    text = "<table>\n<tr><th>a</th><th>b <i>c</i></th></tr>\n<tr><td></td><td>1</td></tr>\n</table>\n"

    assert read_markdown(text).tables == ((("a", "b c"), ("", "1")),)


def test_headings_of_every_kind_are_found():
    """With #, underlined, and in HTML."""
    found = read_markdown("# One *more*\n\nTwo\n---\n\n<h3>Three</h3>\n\n#\n").headings

    assert found == (Heading("One more", 1), Heading("Two", 2), Heading("Three", 3))


def test_a_heading_in_a_cell_is_the_cells_text():
    """Some versions of Docling write the #, some do not; `# of bees` is no heading."""
    tables = read_markdown("| ## A | # of bees |\n| - | - |\n| 1 | 2 |\n").tables

    assert tables[0][0] == ("A", "# of bees")


@pytest.mark.parametrize("text", ["", "\n\n", "<table>", "<td>x</td>", "</table></h1>", "|", "<!-- x"])
def test_broken_markup_raises_nothing(text: str):
    """A truth can be any file."""
    read_markdown(text)


# Words, and the ratio of two sequences of them.

sequences = st.lists(st.sampled_from("abcde"), max_size=30)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ﬁne ofﬁce", "fine office"),
        ("co\u00adlony", "colony"),
        ("a &amp; b", "a & b"),
        ("(nuts) .", "(nuts)."),
        ("wait\u2026", "wait..."),
        ("1984\u20132024 \u2014 “so”", '1984-2024 - "so"'),
        ("cafe\u0301", "caf\u00e9"),
        ("two\u00a0words", "two words"),
    ],
)
def test_spelling_variants_of_the_same_text_are_the_same_words(one: str, other: str):
    """Ligatures, joiners, entities, spaces and typographic characters are not parsing errors."""
    assert words_of(one) == words_of(other)


@pytest.mark.parametrize(("one", "other"), [("Bee", "bee"), ("a+b", "a-b"), ("10", "1 0"), ("ab", "a b")])
def test_other_differences_count(one: str, other: str):
    """Case, symbols and split words."""
    assert words_of(one) != words_of(other)


def test_accents_stay_with_their_word():
    """Arabic and Hindi write vowels as combining marks."""
    assert words_of("أيضًا किताब") == ("أيضًا", "किताब")


@given(sequences)
def test_a_sequence_is_like_itself(sequence: list[str]):
    """Also the empty one."""
    assert sequence_ratio(sequence, sequence) == 1.0


@given(sequences, sequences)
def test_the_common_length_equals_that_of_the_usual_table(left: list[str], right: list[str]):
    """The bit vectors compute the same as dynamic programming."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])

    assert common_length(left, right) == table[-1][-1]


@given(sequences, sequences)
def test_the_ratio_is_symmetric_and_never_below_difflibs(left: list[str], right: list[str]):
    """`difflib` approximates the ratio from below."""
    ratio = sequence_ratio(left, right)

    assert ratio == sequence_ratio(right, left)
    assert 1 >= ratio >= SequenceMatcher(None, left, right, autojunk=False).ratio() - 1e-12


def test_missing_and_additional_words_lower_the_ratio():
    """By their share of the text."""
    text = list("abcdefghij")

    assert sequence_ratio(text[:-1], text) == pytest.approx(18 / 19)
    assert sequence_ratio([*text, "k"], text) == pytest.approx(20 / 21)


def test_long_texts_are_compared_completely():
    """No words are dropped."""
    text = [str(at) for at in range(20_000)]

    assert common_length(text[:10_000] + text[10_001:], text) == 19_999
