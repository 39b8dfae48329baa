"""Both sides are read the same way, whatever marks they carry."""

import pytest

from ingest_assets.evaluation.markdown import Heading, read_markdown


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
def test_marks_are_no_words(marked: str, plain: str):
    """What is said counts, not how it is marked."""
    assert read_markdown(marked).words == read_markdown(plain).words


def test_padded_and_compact_tables_are_the_same():
    """Docling writes both."""
    padded = "| month   | task   |\n|---------|--------|\n| March   |        |\n"
    compact = "| month | task |\n| - | - |\n| March |  |"

    assert read_markdown(padded) == read_markdown(compact)
    assert read_markdown(padded).tables == ((("month", "task"), ("March", "")),)


def test_an_html_table_is_a_table():
    """Markdown that people write holds such."""
    text = "<table>\n<tr><th>a</th><th>b <i>c</i></th></tr>\n<tr><td></td><td>1</td></tr>\n</table>\n"

    assert read_markdown(text).tables == ((("a", "b c"), ("", "1")),)


def test_headings_of_every_kind_are_found():
    """Marked, underlined, and in HTML."""
    found = read_markdown("# One *more*\n\nTwo\n---\n\n<h3>Three</h3>\n\n#\n").headings

    assert found == (Heading("One more", 1), Heading("Two", 2), Heading("Three", 3))


def test_a_heading_in_a_cell_is_the_cells_text():
    """Some versions of Docling mark it, some do not; `# of bees` is no heading."""
    tables = read_markdown("| ## A | # of bees |\n| - | - |\n| 1 | 2 |\n").tables

    assert tables[0][0] == ("A", "# of bees")


@pytest.mark.parametrize("text", ["", "\n\n", "<table>", "<td>x</td>", "</table></h1>", "|", "<!-- x"])
def test_anything_can_be_read(text: str):
    """A truth is somebody's file."""
    read_markdown(text)
