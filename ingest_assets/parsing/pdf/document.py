"""Decisions over the whole document: headings, page furniture, footnotes and reading order."""

from collections.abc import Sequence
from dataclasses import replace

from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.direction import right_to_left_balance
from ingest_assets.parsing.pdf.footnotes import footnotes_of
from ingest_assets.parsing.pdf.furniture import Page, furniture_of
from ingest_assets.parsing.pdf.headings import body_of, headings_of, is_bold, is_in_capitals
from ingest_assets.parsing.pdf.levels import Heading, levels_of
from ingest_assets.parsing.pdf.order import Piece, reading_order

MANY_LINES = 9  # for a table or a picture, so that neither is taken for a label beside a text
_PARTS = ("page_header", "", "page_footer")


def label_blocks(pages: Sequence[Page]) -> list[list[Block]]:
    """Return the pages' blocks in the same order, with the labels that follow from all pages."""
    body = body_of(pages)
    furniture = furniture_of(pages, body.size)
    headings = headings_of(pages, set(furniture), body)
    labels = furniture | dict.fromkeys(headings, "section_header")
    labelled = []
    for number, (height, blocks) in enumerate(pages):
        page = [replace(block, label=labels.get((number, i), block.label)) for i, block in enumerate(blocks)]
        notes = footnotes_of(height, page, body.size)
        labelled.append(
            [replace(block, label="footnote") if i in notes else block for i, block in enumerate(page)]
        )
    return labelled


def reading_orders(pages: Sequence[Sequence[Block]]) -> list[list[int]]:
    """Return each page's block indices in reading order: headers, body, footers."""
    right_to_left = sum(right_to_left_balance(block.text) for blocks in pages for block in blocks) > 0
    return [_page_order(blocks, right_to_left) for blocks in pages]


def heading_levels(blocks: Sequence[Block]) -> list[int]:
    """Return the levels of the headings among these blocks, which are in reading order."""
    headings = [block for block in blocks if block.label == "section_header"]
    return levels_of(
        [Heading(block.text, block.size, is_bold(block), is_in_capitals(block)) for block in headings]
    )


def _page_order(blocks: Sequence[Block], right_to_left: bool) -> list[int]:
    order: list[int] = []
    for part in _PARTS:
        indices = [
            i for i, block in enumerate(blocks) if (block.label if block.label in _PARTS else "") == part
        ]
        pieces = [_piece(blocks[i]) for i in indices]
        order += [indices[i] for i in reading_order(pieces, right_to_left=right_to_left)]
    return order


def _piece(block: Block) -> Piece:
    is_large = block.label in ("table", "picture", "document_index")
    return Piece(
        box=block.box,
        lines=MANY_LINES if is_large else len(block.lines),
        size=0.0 if is_large else block.size,
        is_heading=block.label == "section_header",
    )
