"""What only the whole document tells: its headings, what belongs to its pages, and the order of it all."""

from collections.abc import Sequence
from dataclasses import replace

from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.direction import leaning
from ingest_assets.parsing.pdf.footnotes import footnotes_of
from ingest_assets.parsing.pdf.furniture import Page, furniture_of
from ingest_assets.parsing.pdf.headings import body_of, headings_of, is_bold, is_in_capitals
from ingest_assets.parsing.pdf.levels import Heading, levels_of
from ingest_assets.parsing.pdf.order import Piece, reading_order

MANY_LINES = 9  # as many as a table or a picture counts for: neither is ever a label beside something
_PARTS = ("page_header", "", "page_footer")


def labelled(pages: Sequence[Page]) -> list[list[Block]]:
    """The pages' blocks, in the same order, with the labels that the document as a whole gives them."""
    body = body_of(pages)
    furniture = furniture_of(pages, body.size)
    headings = headings_of(pages, set(furniture), body)
    labels = furniture | dict.fromkeys(headings, "section_header")
    found = []
    for number, (height, blocks) in enumerate(pages):
        own = [replace(block, label=labels.get((number, at), block.label)) for at, block in enumerate(blocks)]
        notes = footnotes_of(height, own, body.size)
        found.append(
            [replace(block, label="footnote") if at in notes else block for at, block in enumerate(own)]
        )
    return found


def orders(pages: Sequence[Sequence[Block]]) -> list[list[int]]:
    """For each page the places of its blocks in reading order: headers, what the page holds, footers."""
    right_to_left = sum(leaning(block.text) for blocks in pages for block in blocks) > 0
    return [_order(blocks, right_to_left) for blocks in pages]


def heading_levels(blocks: Sequence[Block]) -> list[int]:
    """The levels of the headings among these blocks, which come in reading order."""
    headings = [block for block in blocks if block.label == "section_header"]
    return levels_of(
        [Heading(block.text, block.size, is_bold(block), is_in_capitals(block)) for block in headings]
    )


def _order(blocks: Sequence[Block], right_to_left: bool) -> list[int]:
    found: list[int] = []
    for part in _PARTS:
        own = [
            at for at, block in enumerate(blocks) if (block.label if block.label in _PARTS else "") == part
        ]
        pieces = [_piece(blocks[at]) for at in own]
        found += [own[at] for at in reading_order(pieces, right_to_left=right_to_left)]
    return found


def _piece(block: Block) -> Piece:
    is_large = block.label in ("table", "picture", "document_index")
    return Piece(
        box=block.box,
        lines=MANY_LINES if is_large else len(block.lines),
        size=0.0 if is_large else block.size,
        heads=block.label == "section_header",
    )
