"""Running heads, page numbers, line numbers: what stands on every page and belongs to none."""

import re
from collections.abc import Sequence
from itertools import pairwise

from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.lines import stands_beside

MARGIN = 0.14  # share of a page's height, at its top and at its bottom
MAX_LINES = 3
SAME_HEIGHT = 0.015  # share of a page's height
MIN_VOTE = 0.5
MIN_LINE_NUMBERS = 5
STANDS_OUT = 1.02  # times the size of the text
OFF = 0.8  # of its own size: a page number stands at least this far from the text

_PAGE_NUMBER = re.compile(
    r"[-–—|.\s]*(?:(?:page|seite|p\.|s\.)\s*)?(?:\d{1,4}|[ivxlc]{1,7}|[A-Z]?\d{1,3}[-–]\d{1,4})"
    r"(?:\s*(?:of|von|/|de)\s*\d{1,4})?[-–—|.\s]*",
    re.IGNORECASE,
)

_NEVER = {"table", "document_index", "picture", "caption"}

Page = tuple[float, Sequence[Block]]  # its height and its blocks
Place = tuple[int, int]  # which page, which of its blocks


def is_page_number(text: str) -> bool:
    """Whether a text is nothing but a page's number."""
    return bool(_PAGE_NUMBER.fullmatch(text.strip()))


def furniture_of(pages: Sequence[Page], body_size: float) -> dict[Place, str]:
    """Which blocks are page headers and which page footers."""
    repeated = _repeated(pages)
    found: dict[Place, str] = {}
    for number, (height, blocks) in enumerate(pages):
        aside = {at for at, block in enumerate(blocks) if not block.lines} | _line_numbers(blocks)
        found |= {(number, at): "page_header" for at in _line_numbers(blocks)}
        for label in ("page_header", "page_footer"):
            for row in _rows_from_the_edge(label, height, blocks, aside):
                if not any((number, at) in repeated or _is_alone(at, blocks, aside, body_size) for at in row):
                    break
                found |= {(number, at): label for at in row}
    return found


def _rows_from_the_edge(
    label: str, height: float, blocks: Sequence[Block], aside: set[int]
) -> list[list[int]]:
    """Rows of short blocks in the margin, the outermost first, up to the first that is not short."""
    is_head = label == "page_header"
    edge = MARGIN * height if is_head else (1 - MARGIN) * height
    order = sorted(
        (at for at in range(len(blocks)) if at not in aside),
        key=lambda at: blocks[at].box.top if is_head else -blocks[at].box.bottom,
    )
    rows: list[list[int]] = []
    for at in order:
        box = blocks[at].box
        if rows and any(stands_beside(blocks[one].box, box) for one in rows[-1]):
            rows[-1].append(at)
        elif (box.bottom > edge if is_head else box.top < edge) or len(blocks[at].lines) > MAX_LINES:
            break
        else:
            rows.append([at])
    return [row for row in rows if all(_is_short(blocks[at]) for at in row)]


def _is_short(block: Block) -> bool:
    return len(block.lines) <= MAX_LINES and block.label not in _NEVER


def _repeated(pages: Sequence[Page]) -> set[Place]:
    """Blocks in the margins whose text, but for a page number, stands at the same height of another page."""
    places: dict[tuple[str, int], list[Place]] = {}
    for number, (height, blocks) in enumerate(pages):
        for at, block in enumerate(blocks):
            middle = block.box.middle_y / height
            if block.lines and _is_short(block) and not MARGIN < middle < 1 - MARGIN:
                for band in (int(middle / SAME_HEIGHT), int(middle / SAME_HEIGHT + 0.5) + 1000):
                    places.setdefault((_pattern(block.text), band), []).append((number, at))
    return {
        place
        for found in places.values()
        for one, other in pairwise(found)
        if one[0] != other[0] and _counts_pages(pages, one, other)
        for place in (one, other)
    }


def _pattern(text: str) -> str:
    return re.sub(r"\d+|\b[ivxlc]+\b", "#", " ".join(text.split()).lower())


def _counts_pages(pages: Sequence[Page], one: Place, other: Place) -> bool:
    """The numbers in both texts are the same, or as far apart as their pages. Chapters count otherwise."""
    numbers = [re.findall(r"\d+", pages[number][1][at].text) for number, at in (one, other)]
    if len(numbers[0]) != len(numbers[1]):
        return True  # Roman numerals
    apart = other[0] - one[0]
    return all(int(after) - int(before) in (0, apart) for before, after in zip(*numbers, strict=True))


def _is_alone(at: int, blocks: Sequence[Block], aside: set[int], body_size: float) -> bool:
    """At a page's edge, a number off the text; or what the detector calls so and nothing denies."""
    block = blocks[at]
    others = [other for one, other in enumerate(blocks) if one != at and one not in aside]
    gaps = [-other.box.shared_height(block.box) for other in others if other.box.shared_width(block.box) > 0]
    if min(gaps, default=block.size) < OFF * block.size:
        return False
    if is_page_number(block.text):
        return True
    first = block.lines[0]
    stands_out = first.style.bold > 0.5 or first.size > STANDS_OUT * body_size
    return block.vote("header", "footer") >= MIN_VOTE and not stands_out and len(block.lines) < MAX_LINES


def _line_numbers(blocks: Sequence[Block]) -> set[int]:
    """Numbers beside the lines of a manuscript: many below each other, each one more than the last."""
    numbers = [at for at, block in enumerate(blocks) if block.text.strip().isdecimal()]
    columns: dict[int, list[int]] = {}
    for at in sorted(numbers, key=lambda at: blocks[at].box.top):
        columns.setdefault(round(blocks[at].box.right / 4), []).append(at)
    return {
        at
        for column in columns.values()
        if len(column) >= MIN_LINE_NUMBERS and _counts_up([int(blocks[at].text) for at in column])
        for at in column
    }


def _counts_up(numbers: Sequence[int]) -> bool:
    steps = [after - before for before, after in pairwise(numbers)]
    return sum(0 < step <= 5 for step in steps) >= 0.9 * len(steps)
