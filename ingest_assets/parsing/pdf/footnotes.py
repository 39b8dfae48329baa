"""Footnotes: small print with a mark, below everything else in its column."""

import re
from collections.abc import Sequence

from ingest_assets.parsing.pdf.blocks import Block

MAX_SIZE = 0.93  # times the size of the text
LOWER_PART = 0.5  # share of the page's height: footnotes start below it

_MARK = re.compile(r"(?:\d{1,3}|[*∗†‡§¶‖#]{1,3}|[a-z])(?:\s|[.)]\s|(?=[A-Z(]))")


def footnotes_of(height: float, blocks: Sequence[Block], body_size: float) -> set[int]:
    """Return the blocks that are footnotes, found from the foot of each column upwards."""
    small = {i for i, block in enumerate(blocks) if _is_small(block, height, body_size)}
    notes: set[int] = set()
    for i in sorted(small, key=lambda i: -blocks[i].box.bottom):
        below = [
            j
            for j, block in enumerate(blocks)
            if block.box.top >= blocks[i].box.bottom - 1 and block.box.shared_width(blocks[i].box) > 0
        ]
        is_lowest = all(j in notes or blocks[j].label in ("page_footer", "page_header") for j in below)
        if is_lowest and (notes & set(below) or _MARK.match(blocks[i].text)):
            notes.add(i)
    return notes


def _is_small(block: Block, height: float, body_size: float) -> bool:
    return (
        block.label in ("text", "list_item")
        and block.box.top > LOWER_PART * height
        and max(line.size for line in block.lines) <= MAX_SIZE * body_size
    )
