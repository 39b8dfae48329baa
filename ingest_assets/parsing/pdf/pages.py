"""Conversion of Docling's pages to the engine's, and of the engine's blocks to Docling's clusters.

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
from ingest_assets.parsing.pdf.pdfium import has_unnamed_fonts, page_fonts, with_font_names
from ingest_assets.parsing.pdf.turns import main_turn, rotate_back

MAX_RULE_THICKNESS = 3.0  # points
_HEAVY = {PdfCellRenderingMode.FILL_THEN_STROKE, PdfCellRenderingMode.FILL_THEN_STROKE_AND_CLIPPING}


class RegionCluster(Cluster):
    """A region with the detector's label, since Docling has fewer labels."""

    region: str


class BlockCluster(Cluster):
    """A block of a page with the styles of its lines, for decisions over the whole document."""

    block: Any  # a Block of the upright page, not validated by Pydantic
    turn: int = 0  # angle of the page's text, see `pdf.turns`
    content: Any = None  # the upright page; only for tables, until their cells are computed


def page_content(page: Page) -> PageContent:
    """Return text, drawings and regions of a page after parsing, OCR and layout detection."""
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
            Region(cluster.region, cluster.confidence, engine_box(cluster.bbox))
            for cluster in clusters
            if isinstance(cluster, RegionCluster)
        ),
    )


def page_content_with_fonts(page: Page, conv_res: ConversionResult) -> PageContent:
    """Return the same, with font names that the parser omits."""
    content = page_content(page)
    source = pdf_bytes(conv_res)
    if source is None or not has_unnamed_fonts(content.words):
        return content
    fonts = page_fonts(source, page.page_no)
    return replace(
        content, pieces=with_font_names(content.pieces, fonts), words=with_font_names(content.words, fonts)
    )


def pdf_bytes(conv_res: ConversionResult) -> bytes | None:
    """Return the bytes of the input if it is a PDF."""
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
        turn=_right_angle(xs[1] - xs[0], ys[1] - ys[0]),
    )


def _rectangle_turn(rect: BoundingRectangle) -> int:
    """Return the direction of the rectangle's baseline, rounded to a right angle; y points down."""
    return _right_angle(rect.r_x1 - rect.r_x0, rect.r_y1 - rect.r_y0)


def _right_angle(along: float, down: float) -> int:
    if abs(along) >= abs(down):
        return 0 if along >= 0 else 180
    return 270 if down > 0 else 90


def _boxes(boxes: Iterable[BoundingBox] | None) -> tuple[Box, ...]:
    return tuple(engine_box(box) for box in boxes or ())


def engine_box(box: BoundingBox) -> Box:
    """Convert Docling's rectangle to the engine's."""
    return Box(min(box.l, box.r), min(box.t, box.b), max(box.l, box.r), max(box.t, box.b))


def docling_box(box: Box) -> BoundingBox:
    """Convert the engine's rectangle to Docling's."""
    return BoundingBox(l=box.left, t=box.top, r=box.right, b=box.bottom, coord_origin=CoordOrigin.TOPLEFT)


def page_turn(page: Page) -> int:
    """Return the angle of most of the page's text."""
    return main_turn((_rectangle_turn(cell.rect), cell.text) for cell in page.cells)


def clusters_of(blocks: Sequence[Block], page: Page, turn: int) -> list[Cluster]:
    """Return Docling's clusters for the blocks of the upright page, in the parser's order."""
    ordered = sorted(blocks, key=lambda block: (_parser_order(block), block.box.top, block.box.left))
    clusters: list[Cluster] = []
    number = 0
    for block in ordered:
        children = []
        for inner in block.inner if block.label == "picture" else ():
            number += 1
            children.append(_cluster(number, inner, page, turn))
        number += 1
        clusters.append(_cluster(number, block, page, turn, children))
    return clusters


def _parser_order(block: Block) -> float:
    return min((line.order for line in block.lines), default=float("inf"))


def _cluster(
    number: int, block: Block, page: Page, turn: int, children: Sequence[Cluster] = ()
) -> BlockCluster:
    return BlockCluster(
        id=number,
        label=DocItemLabel(block.label),
        bbox=_original_box(block.box, page, turn),
        confidence=block.score,
        cells=[_cell(line, page, turn) for line in block.lines],
        children=list(children),
        block=block,
        turn=turn,
    )


def _cell(line: Line, page: Page, turn: int) -> TextCell:
    rect = BoundingRectangle.from_bounding_box(_original_box(line.box, page, turn))
    return TextCell(index=line.order, rect=rect, text=line.text, orig=line.text, from_ocr=False)


def _original_box(box: Box, page: Page, turn: int) -> BoundingBox:
    assert page.size is not None
    return docling_box(rotate_back(box, turn, page.size.width, page.size.height))
