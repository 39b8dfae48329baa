"""The embedded engine as Docling plugins: layout, table structure and OCR. Importing it imports Docling.

Docling finds the three functions at the end by the entry point group `docling`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from docling.datamodel.accelerator_options import AcceleratorOptions
from docling.datamodel.base_models import Cluster, LayoutPrediction, Page, Table, TableStructurePrediction
from docling.datamodel.document import ConversionResult
from docling.datamodel.pipeline_options import BaseLayoutOptions, BaseTableStructureOptions
from docling.models.base_layout_model import BaseLayoutModel
from docling.models.base_table_model import BaseTableStructureModel
from docling_core.types.doc import DocItemLabel, Size, TableCell

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.contents import contents_grid
from ingest_assets.parsing.pdf.grids import Grid, GridCell, grid_of, table_words
from ingest_assets.parsing.pdf.layout import RENDER_SCALE, PageLayout, Region
from ingest_assets.parsing.pdf.ocr import ScannedPageOcrModel, ScannedPageOcrOptions
from ingest_assets.parsing.pdf.pages import BlockCluster, RegionCluster, docling_box, page_turn
from ingest_assets.parsing.pdf.turns import TO_UPRIGHT, rotate_back

__all__ = ["EmbeddedLayoutOptions", "GeometricTableOptions", "ScannedPageOcrOptions"]

_LABELS = {
    "text": DocItemLabel.TEXT,
    "title": DocItemLabel.SECTION_HEADER,
    "figure": DocItemLabel.PICTURE,
    "figure_caption": DocItemLabel.CAPTION,
    "table": DocItemLabel.TABLE,
    "table_caption": DocItemLabel.CAPTION,
    "header": DocItemLabel.PAGE_HEADER,
    "footer": DocItemLabel.PAGE_FOOTER,
    "reference": DocItemLabel.TEXT,
    "equation": DocItemLabel.FORMULA,
}


class EmbeddedLayoutOptions(BaseLayoutOptions):
    """The scale of the page image for the detector."""

    kind: ClassVar[str] = "ingest_cdla"
    scale: float = RENDER_SCALE


class EmbeddedLayoutModel(BaseLayoutModel):
    """Detects regions with the packaged model, one page per inference."""

    def __init__(
        self,
        artifacts_path: Path | None,
        accelerator_options: AcceleratorOptions,
        options: EmbeddedLayoutOptions,
        enable_remote_services: bool = False,
    ) -> None:
        self.options = options
        self._layout = PageLayout(threads=accelerator_options.num_threads)

    @classmethod
    def get_options_type(cls) -> type[BaseLayoutOptions]:
        return EmbeddedLayoutOptions

    def predict_layout(self, conv_res: ConversionResult, pages: Sequence[Page]) -> Sequence[LayoutPrediction]:
        return [self._predict(page) for page in pages]

    def _predict(self, page: Page) -> LayoutPrediction:
        scale = self.options.scale
        image = (
            page.get_image(scale=scale) if page._backend is not None and page._backend.is_valid() else None
        )
        if image is None or page.size is None:
            return LayoutPrediction()
        turn = page_turn(page)
        regions = self._layout.regions(image.rotate(TO_UPRIGHT[turn], expand=True) if turn else image)
        return LayoutPrediction(
            clusters=[_cluster(at, region, turn, page.size) for at, region in enumerate(regions)]
        )


def _cluster(number: int, region: Region, turn: int, size: Size) -> Cluster:
    """Convert a region of the upright page to a cluster on the original page."""
    width, height = (size.height, size.width) if turn in (90, 270) else (size.width, size.height)
    upright = Box(region.left * width, region.top * height, region.right * width, region.bottom * height)
    box = docling_box(rotate_back(upright, turn, size.width, size.height))
    return RegionCluster(
        id=number, label=_LABELS[region.label], confidence=region.score, bbox=box, region=region.label
    )


class GeometricTableOptions(BaseTableStructureOptions):
    """No options: the table structure follows from positions alone."""

    kind: ClassVar[str] = "ingest_geometry"


class GeometricTableModel(BaseTableStructureModel):
    """Derives rows, columns and spans from the positions of words and lines; keeps all text of a table."""

    def __init__(
        self,
        enabled: bool,
        artifacts_path: Path | None,
        options: GeometricTableOptions,
        accelerator_options: AcceleratorOptions,
        enable_remote_services: bool = False,
    ) -> None:
        self.enabled = enabled
        self.options = options

    @classmethod
    def get_options_type(cls) -> type[BaseTableStructureOptions]:
        return GeometricTableOptions

    def predict_tables(
        self, conv_res: ConversionResult, pages: Sequence[Page]
    ) -> Sequence[TableStructurePrediction]:
        return [TableStructurePrediction(table_map=dict(_tables(page))) for page in pages]


def _tables(page: Page) -> Iterable[tuple[int, Table]]:
    clusters = page.predictions.layout.clusters if page.predictions.layout else []
    for cluster in clusters:
        if isinstance(cluster, BlockCluster) and cluster.content is not None:
            block, content = cluster.block, cluster.content
            cluster.content = None
            if block.label == "document_index":
                grid = contents_grid(block.lines)
            else:
                words = table_words(content, [line.box for line in block.lines])
                grid = grid_of(words, content.rules, block.box)
            if grid.rows:
                yield cluster.id, _table(page, cluster, grid)


def _table(page: Page, cluster: BlockCluster, grid: Grid) -> Table:
    return Table(
        otsl_seq=[],
        table_cells=[_table_cell(cell, page, cluster.turn) for cell in grid.cells],
        num_rows=grid.rows,
        num_cols=grid.columns,
        id=cluster.id,
        page_no=page.page_no,
        cluster=cluster,
        label=cluster.label,
    )


def _table_cell(cell: GridCell, page: Page, turn: int) -> TableCell:
    assert page.size is not None
    return TableCell(
        bbox=docling_box(rotate_back(cell.box, turn, page.size.width, page.size.height)),
        row_span=cell.end_row - cell.row,
        col_span=cell.end_column - cell.column,
        start_row_offset_idx=cell.row,
        end_row_offset_idx=cell.end_row,
        start_col_offset_idx=cell.column,
        end_col_offset_idx=cell.end_column,
        text=cell.text,
        column_header=cell.is_header,
    )


def layout_engines() -> dict[str, list[type]]:
    return {"layout_engines": [EmbeddedLayoutModel]}


def table_structure_engines() -> dict[str, list[type]]:
    return {"table_structure_engines": [GeometricTableModel]}


def ocr_engines() -> dict[str, list[type]]:
    return {"ocr_engines": [ScannedPageOcrModel]}
