"""Markdown texts to compare: one written by hand, and random ones."""

from hypothesis import strategies as st

HANDBOOK = """# Keeping bees

Colonies need space, food and quiet.

## Spring

Look for the queen when willows bloom. A frame of brood is worth more than three of honey.

| month | task | tool |
| - | - | - |
| March | weigh the hives | scale |
| April | widen the nest | frame |
| May | prevent swarms | knife |

## Summer

Harvest when the combs are capped, never before.

## Winter

Leave them alone; listen once a month.
"""

words = st.text(alphabet="abcdefghijklmnop", min_size=1, max_size=6)
sentences = st.lists(words, min_size=1, max_size=12).map(" ".join)
headings = st.builds(lambda level, text: f"{'#' * level} {text}", st.integers(1, 6), sentences)
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(words, min_size=width, max_size=width), min_size=2, max_size=5).map(
        lambda rows: _table(rows, width)
    )
)
documents = st.lists(sentences | headings | tables, min_size=1, max_size=8).map("\n\n".join)


def _table(rows: list[list[str]], width: int) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + " - |" * width, *lines[1:]])
