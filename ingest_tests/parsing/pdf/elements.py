"""Short constructors for the words, lines and blocks of tests."""

from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.lines import Line, Style, Word

BOLD = Style(bold=1.0)
ITALIC = Style(italic=1.0)
MONO = Style(mono=1.0)
PLAIN = Style()


def word(left: float, top: float, width: float, text: str, *, height: float = 10, font: str = "") -> Word:
    return Word(Box(left, top, left + width, top + height), text, font)


def line(
    left: float,
    top: float,
    width: float,
    text: str,
    *,
    size: float = 10,
    style: Style = PLAIN,
    font: str = "/Times-Roman",
    order: int = 0,
) -> Line:
    first = width * len(text.split(" ")[0]) / max(1, len(text))
    box = Box(left, top, left + width, top + size)
    return Line(box, text, size, font, style, style, style, first, order)


def block(*lines: Line, label: str = "text", votes: tuple[tuple[str, float], ...] = ()) -> Block:
    return Block(label, bounding_box(one.box for one in lines), lines, votes)


def prose(left: float, top: float, count: int, *, width: float = 200, step: float = 12) -> Block:
    """A paragraph of this many full lines."""
    return block(*(line(left, top + step * at, width, "some words that fill a line") for at in range(count)))
