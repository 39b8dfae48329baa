"""Docling's pages as the embedded engine sees them, and its blocks as Docling's clusters.

Only Docling loads this module.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

from docling.datamodel.base_models import Cluster, InputFormat, Page
from docling.datamodel.document import ConversionResult
from docling_core.types.doc.base import BoundingBox, CoordOrigin
from docling_core.types.doc.labels import DocItemLabel
from docling_core.types.doc.page import BoundingRectangle, PdfCellRenderingMode, TextCell

from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import PageContent, Region
from ingest_assets.parsing.pdf.lines import Line, Word
from ingest_assets.parsing.pdf.second_look import fonts_of, has_nameless_fonts, with_names
from ingest_assets.parsing.pdf.turns import main_turn, turned_back

MAX_RULE_THICKNESS = 3.0  # points
_HEAVY = {PdfCellRenderingMode.FILL_THEN_STROKE, PdfCellRenderingMode.FILL_THEN_STROKE_AND_CLIPPING}


class RegionCluster(Cluster):
    """A region as the detector named it; Docling's labels know fewer names."""

    region: str


class BlockCluster(Cluster):
    """A block of a page; it keeps the styles of its lines for what is decided over the whole document."""

    block: Any  # a Block of the upright page: plain data, nothing for Pydantic to look into
    turn: int = 0  # how the page's text is turned
    content: Any = None  # of a table, until its cells are found: the upright page


def content_of(page: Page) -> PageContent:
    """Text, drawings and regions of a page that has been parsed, laid out and, where needed, read by OCR."""
    assert page.size is not None
    assert page._backend is not None
    parsed = page.parsed_page
    clusters = page.predictions.layout.clusters if page.predictions.layout else []
    backend = page._backend
    return PageContent(
        width=page.size.width,
        height=page.size.height,
        pieces=tuple(_word(cell) for cell in page.cells),
        words=tuple(_word(cell) for cell in parsed.word_cells) if parsed else (),
        rules=_boxes(backend.get_thin_shape_boxes(max_thickness=MAX_RULE_THICKNESS)),
        drawings=_boxes(backend.get_connected_shape_bounding_boxes()),
        bitmaps=_boxes(backend.get_bitmap_rects()),
        regions=tuple(
            Region(cluster.region, cluster.confidence, own_box(cluster.bbox))
            for cluster in clusters
            if isinstance(cluster, RegionCluster)
        ),
    )


def content_of_named(page: Page, conv_res: ConversionResult) -> PageContent:
    """The same, with the names of fonts that the parser left out."""
    content = content_of(page)
    source = pdf_bytes(conv_res)
    if source is None or not has_nameless_fonts(content.words):
        return content
    fonts = fonts_of(source, page.page_no)
    return replace(content, pieces=with_names(content.pieces, fonts), words=with_names(content.words, fonts))


def pdf_bytes(conv_res: ConversionResult) -> bytes | None:
    """The file that is read, if it is a PDF."""
    source = getattr(conv_res.input._backend, "path_or_stream", None)
    is_pdf = conv_res.input.format == InputFormat.PDF
    return source.getvalue() if is_pdf and isinstance(source, BytesIO) else None


def _word(cell: TextCell) -> Word:
    rect = cell.rect
    xs = (rect.r_x0, rect.r_x1, rect.r_x2, rect.r_x3)
    ys = (rect.r_y0, rect.r_y1, rect.r_y2, rect.r_y3)
    return Word(
        box=Box(min(xs), min(ys), max(xs), max(ys)),
        text=cell.text.replace("\x02", "-"),
        font=getattr(cell, "font_name", ""),
        heavy=getattr(cell, "rendering_mode", None) in _HEAVY,
        turn=_direction(xs[1] - xs[0], ys[1] - ys[0]),
    )


def _turn(rect: BoundingRectangle) -> int:
    """The direction of the rectangle's foot, to the next right angle; heights count from the top."""
    return _direction(rect.r_x1 - rect.r_x0, rect.r_y1 - rect.r_y0)


def _direction(along: float, down: float) -> int:
    if abs(along) >= abs(down):
        return 0 if along >= 0 else 180
    return 270 if down > 0 else 90


def _boxes(found: Iterable[BoundingBox] | None) -> tuple[Box, ...]:
    return tuple(own_box(box) for box in found or ())


def own_box(box: BoundingBox) -> Box:
    """Docling's rectangle, in the engine's terms."""
    return Box(min(box.l, box.r), min(box.t, box.b), max(box.l, box.r), max(box.t, box.b))


def docling_box(box: Box) -> BoundingBox:
    """The same rectangle, in Docling's terms."""
    return BoundingBox(l=box.left, t=box.top, r=box.right, b=box.bottom, coord_origin=CoordOrigin.TOPLEFT)


def page_turn(page: Page) -> int:
    """How the text of a page is turned."""
    return main_turn((_turn(cell.rect), cell.text) for cell in page.cells)


def clusters_of(blocks: Sequence[Block], page: Page, turn: int) -> list[Cluster]:
    """Docling's clusters for the blocks of the upright page, in the order in which the parser met them."""
    ordered = sorted(blocks, key=lambda block: (_order(block), block.box.top, block.box.left))
    found: list[Cluster] = []
    number = 0
    for block in ordered:
        children = []
        for inner in block.inner if block.label == "picture" else ():
            number += 1
            children.append(_cluster(number, inner, page, turn))
        number += 1
        found.append(_cluster(number, block, page, turn, children))
    return found


def _order(block: Block) -> float:
    return min((line.order for line in block.lines), default=float("inf"))


def _cluster(
    number: int, block: Block, page: Page, turn: int, children: Sequence[Cluster] = ()
) -> BlockCluster:
    return BlockCluster(
        id=number,
        label=DocItemLabel(block.label),
        bbox=_on_page(block.box, page, turn),
        confidence=block.score,
        cells=[_cell(line, page, turn) for line in block.lines],
        children=list(children),
        block=block,
        turn=turn,
    )


def _cell(line: Line, page: Page, turn: int) -> TextCell:
    rect = BoundingRectangle.from_bounding_box(_on_page(line.box, page, turn))
    return TextCell(index=line.order, rect=rect, text=line.text, orig=line.text, from_ocr=False)


def _on_page(box: Box, page: Page, turn: int) -> BoundingBox:
    assert page.size is not None
    return docling_box(turned_back(box, turn, page.size.width, page.size.height))
