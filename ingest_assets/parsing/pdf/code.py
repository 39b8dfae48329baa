"""Program text: blocks in monospaced type, with their line breaks and indentation."""

import re
from collections.abc import Sequence

from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.lines import Line

MONO = 0.8  # share of a line's letters
MAX_GAP = 3.0  # of the text's height: an empty line does not end a program


_ADDRESS = re.compile(r"\W*\w?\W*(?:\w+://\S+|www\.\S+|\S+@\S+)")


def is_code(run: Sequence[Line]) -> bool:
    """True for lines in monospaced type, unless they are only an address."""
    if any(line.style.mono < MONO for line in run):
        return False
    return not all(_ADDRESS.fullmatch(line.text.strip()) for line in run)


def join_code(runs: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Join runs of program text that follow each other down a column."""
    texts: list[list[Line]] = []
    for run in sorted(runs, key=lambda run: (run[0].box.top, run[0].box.left)):
        box = bounding_box(line.box for line in run)
        above = next(
            (own for own in texts if _follows(bounding_box(line.box for line in own), box, run[0].size)), None
        )
        if above is None:
            texts.append(list(run))
        else:
            above.extend(run)
    return texts


def _follows(upper: Box, lower: Box, size: float) -> bool:
    gap = lower.top - upper.bottom
    return -0.5 * size <= gap <= MAX_GAP * size and upper.shared_width(lower) > 0


def code_text(lines: Sequence[Line]) -> str:
    """Return the program text with its line breaks and indentation."""
    left = min(line.box.left for line in lines)
    widths = [line.box.width / len(line.text) for line in lines if len(line.text) > 2]
    width = sorted(widths)[len(widths) // 2] if widths else 0.0
    indents = [round((line.box.left - left) / width) if width > 0 else 0 for line in lines]
    return "\n".join(" " * indent + line.text.rstrip() for indent, line in zip(indents, lines, strict=True))
