"""Docling's pages as the embedded engine sees them, and its blocks as Docling's clusters.

Only Docling loads this module.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from docling.datamodel.base_models import Cluster, Page
from docling_core.types.doc.base import BoundingBox, CoordOrigin
from docling_core.types.doc.labels import DocItemLabel
from docling_core.types.doc.page import BoundingRectangle, PdfCellRenderingMode, TextCell

from ingest_assets.parsing.embedded.blocks import Block
from ingest_assets.parsing.embedded.boxes import Box
from ingest_assets.parsing.embedded.content import PageContent, Region
from ingest_assets.parsing.embedded.lines import Line, Word

MAX_RULE_THICKNESS = 3.0  # points
_HEAVY = {PdfCellRenderingMode.FILL_THEN_STROKE, PdfCellRenderingMode.FILL_THEN_STROKE_AND_CLIPPING}


class RegionCluster(Cluster):
    """A region as the detector named it; Docling's labels know fewer names."""

    region: str


class BlockCluster(Cluster):
    """A block of a page; it keeps the styles of its lines for what is decided over the whole document."""

    block: Any  # a Block: plain data, nothing for Pydantic to look into


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


def _word(cell: TextCell) -> Word:
    return Word(
        box=own_box(cell.rect.to_bounding_box()),
        text=cell.text.replace("\x02", "-"),
        font=getattr(cell, "font_name", ""),
        heavy=getattr(cell, "rendering_mode", None) in _HEAVY,
    )


def _boxes(found: Iterable[BoundingBox] | None) -> tuple[Box, ...]:
    return tuple(own_box(box) for box in found or ())


def own_box(box: BoundingBox) -> Box:
    """Docling's rectangle, in the engine's terms."""
    return Box(min(box.l, box.r), min(box.t, box.b), max(box.l, box.r), max(box.t, box.b))


def docling_box(box: Box) -> BoundingBox:
    """The same rectangle, in Docling's terms."""
    return BoundingBox(l=box.left, t=box.top, r=box.right, b=box.bottom, coord_origin=CoordOrigin.TOPLEFT)


def cluster_lines(cluster: Cluster) -> list[Box]:
    """Where the lines of a cluster are."""
    return [own_box(cell.rect.to_bounding_box()) for cell in cluster.cells]


def clusters_of(blocks: Sequence[Block]) -> list[Cluster]:
    """Docling's clusters, in the order in which the parser met their text; ties go from top to bottom."""
    ordered = sorted(blocks, key=lambda block: (_order(block), block.box.top, block.box.left))
    found: list[Cluster] = []
    number = 0
    for block in ordered:
        children = []
        for inner in block.inner if block.label == "picture" else ():
            number += 1
            children.append(_cluster(number, inner))
        number += 1
        found.append(_cluster(number, block, children))
    return found


def _order(block: Block) -> float:
    return min((line.order for line in block.lines), default=float("inf"))


def _cluster(number: int, block: Block, children: Sequence[Cluster] = ()) -> BlockCluster:
    return BlockCluster(
        id=number,
        label=DocItemLabel(block.label),
        bbox=docling_box(block.box),
        confidence=block.score,
        cells=[_cell(line) for line in block.lines],
        children=list(children),
        block=block,
    )


def _cell(line: Line) -> TextCell:
    rect = BoundingRectangle.from_bounding_box(docling_box(line.box))
    return TextCell(index=line.order, rect=rect, text=line.text, orig=line.text, from_ocr=False)
