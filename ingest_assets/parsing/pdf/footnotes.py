"""Notes at the foot of a page: small print below everything else in its column, with a mark before it."""

import re
from collections.abc import Sequence

from ingest_assets.parsing.pdf.blocks import Block

MAX_SIZE = 0.93  # times the size of the text
LOWER_PART = 0.5  # share of the page's height, above which no footnote stands

_MARK = re.compile(r"(?:\d{1,3}|[*∗†‡§¶‖#]{1,3}|[a-z])(?:\s|[.)]\s|(?=[A-Z(]))")


def footnotes_of(height: float, blocks: Sequence[Block], body_size: float) -> set[int]:
    """Which blocks are footnotes: from the foot of each column upwards, as long as they look like it."""
    small = {at for at, block in enumerate(blocks) if _is_small(block, height, body_size)}
    found: set[int] = set()
    for at in sorted(small, key=lambda at: -blocks[at].box.bottom):
        below = [
            one
            for one, block in enumerate(blocks)
            if block.box.top >= blocks[at].box.bottom - 1 and block.box.shared_width(blocks[at].box) > 0
        ]
        is_lowest = all(one in found or blocks[one].label in ("page_footer", "page_header") for one in below)
        if is_lowest and (found & set(below) or _MARK.match(blocks[at].text)):
            found.add(at)
    return found


def _is_small(block: Block, height: float, body_size: float) -> bool:
    return (
        block.label in ("text", "list_item")
        and block.box.top > LOWER_PART * height
        and max(line.size for line in block.lines) <= MAX_SIZE * body_size
    )
