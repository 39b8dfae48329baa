"""Page furniture: running heads, page numbers and line numbers."""

import re
from collections.abc import Sequence
from itertools import pairwise

from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.lines import is_beside

MARGIN = 0.14  # share of a page's height, at its top and at its bottom
MAX_LINES = 3
SAME_HEIGHT = 0.015  # share of a page's height
MIN_VOTE = 0.5
MIN_LINE_NUMBERS = 5
STANDS_OUT = 1.02  # times the size of the text
OFF = 0.8  # of its own height: the minimum distance of a page number from the text

_PAGE_NUMBER = re.compile(
    r"[-–—|.\s]*(?:(?:page|seite|p\.|s\.)\s*)?(?:\d{1,4}|[ivxlc]{1,7}|[A-Z]?\d{1,3}[-–]\d{1,4})"
    r"(?:\s*(?:of|von|/|de)\s*\d{1,4})?[-–—|.\s]*",
    re.IGNORECASE,
)

_NEVER = {"table", "document_index", "picture", "caption"}

Page = tuple[float, Sequence[Block]]  # height and blocks
Place = tuple[int, int]  # index of the page, index of the block


def is_page_number(text: str) -> bool:
    """True if a text is only a page number."""
    return bool(_PAGE_NUMBER.fullmatch(text.strip()))


def furniture_of(pages: Sequence[Page], body_size: float) -> dict[Place, str]:
    """Return the blocks that are page headers or footers, with their labels."""
    repeated = _repeated(pages)
    labels: dict[Place, str] = {}
    for number, (height, blocks) in enumerate(pages):
        aside = {i for i, block in enumerate(blocks) if not block.lines} | _line_numbers(blocks)
        labels |= {(number, i): "page_header" for i in _line_numbers(blocks)}
        for label in ("page_header", "page_footer"):
            for row in _rows_from_the_edge(label, height, blocks, aside):
                if not any((number, i) in repeated or _is_isolated(i, blocks, aside, body_size) for i in row):
                    break
                labels |= {(number, i): label for i in row}
    return labels


def _rows_from_the_edge(
    label: str, height: float, blocks: Sequence[Block], aside: set[int]
) -> list[list[int]]:
    """Return rows of short blocks in the margin from the page's edge, up to the first long one."""
    is_head = label == "page_header"
    edge = MARGIN * height if is_head else (1 - MARGIN) * height
    order = sorted(
        (i for i in range(len(blocks)) if i not in aside),
        key=lambda i: blocks[i].box.top if is_head else -blocks[i].box.bottom,
    )
    rows: list[list[int]] = []
    for i in order:
        box = blocks[i].box
        if rows and any(is_beside(blocks[one].box, box) for one in rows[-1]):
            rows[-1].append(i)
        elif (box.bottom > edge if is_head else box.top < edge) or len(blocks[i].lines) > MAX_LINES:
            break
        else:
            rows.append([i])
    return [row for row in rows if all(_is_short(blocks[i]) for i in row)]


def _is_short(block: Block) -> bool:
    return len(block.lines) <= MAX_LINES and block.label not in _NEVER


def _repeated(pages: Sequence[Page]) -> set[Place]:
    """Return blocks in margins whose text, except for a page number, is at the same height on two pages."""
    places: dict[tuple[str, int], list[Place]] = {}
    for number, (height, blocks) in enumerate(pages):
        for i, block in enumerate(blocks):
            middle = block.box.middle_y / height
            if block.lines and _is_short(block) and not MARGIN < middle < 1 - MARGIN:
                for band in (int(middle / SAME_HEIGHT), int(middle / SAME_HEIGHT + 0.5) + 1000):
                    places.setdefault((_pattern(block.text), band), []).append((number, i))
    return {
        place
        for same in places.values()
        for one, other in pairwise(same)
        if one[0] != other[0] and _counts_pages(pages, one, other)
        for place in (one, other)
    }


def _pattern(text: str) -> str:
    return re.sub(r"\d+|\b[ivxlc]+\b", "#", " ".join(text.split()).lower())


def _counts_pages(pages: Sequence[Page], one: Place, other: Place) -> bool:
    """True if the numbers in both texts are equal or differ as their pages do; chapter numbers do not."""
    numbers = [re.findall(r"\d+", pages[number][1][i].text) for number, i in (one, other)]
    if len(numbers[0]) != len(numbers[1]):
        return True  # Roman numerals
    apart = other[0] - one[0]
    return all(int(after) - int(before) in (0, apart) for before, after in zip(*numbers, strict=True))


def _is_isolated(i: int, blocks: Sequence[Block], aside: set[int], body_size: float) -> bool:
    """True for a page number away from the text, or a likely header or footer that does not stand out."""
    block = blocks[i]
    others = [other for one, other in enumerate(blocks) if one != i and one not in aside]
    gaps = [-other.box.shared_height(block.box) for other in others if other.box.shared_width(block.box) > 0]
    if min(gaps, default=block.size) < OFF * block.size:
        return False
    if is_page_number(block.text):
        return True
    first = block.lines[0]
    stands_out = first.style.bold > 0.5 or first.size > STANDS_OUT * body_size
    return block.vote("header", "footer") >= MIN_VOTE and not stands_out and len(block.lines) < MAX_LINES


def _line_numbers(blocks: Sequence[Block]) -> set[int]:
    """Return the numbers beside the lines of a manuscript: many, one below the other, counting up."""
    numbers = [i for i, block in enumerate(blocks) if block.text.strip().isdecimal()]
    columns: dict[int, list[int]] = {}
    for i in sorted(numbers, key=lambda i: blocks[i].box.top):
        columns.setdefault(round(blocks[i].box.right / 4), []).append(i)
    return {
        i
        for column in columns.values()
        if len(column) >= MIN_LINE_NUMBERS and _counts_up([int(blocks[i].text) for i in column])
        for i in column
    }


def _counts_up(numbers: Sequence[int]) -> bool:
    steps = [after - before for before, after in pairwise(numbers)]
    return sum(0 < step <= 5 for step in steps) >= 0.9 * len(steps)
