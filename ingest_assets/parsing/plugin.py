"""The embedded engine as Docling plug-ins: layout, table structure and OCR. Only Docling imports this module.

Docling finds the three functions at the end through the entry point group `docling`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from docling.datamodel.accelerator_options import AcceleratorOptions
from docling.datamodel.base_models import Cluster, LayoutPrediction, Page, Table, TableStructurePrediction
from docling.datamodel.document import ConversionResult
from docling.datamodel.pipeline_options import BaseLayoutOptions, BaseTableStructureOptions, RapidOcrOptions
from docling.models.base_layout_model import TABLE_LABELS, BaseLayoutModel
from docling.models.base_table_model import BaseTableStructureModel
from docling.models.stages.ocr.rapid_ocr_model import RapidOcrModel
from docling_core.types.doc import BoundingBox, CoordOrigin, DocItemLabel, TableCell

from ingest_assets.parsing.embedded.grids import Grid, GridCell, grid_of, table_words
from ingest_assets.parsing.embedded.layout import RENDER_SCALE, PageLayout, Region
from ingest_assets.parsing.embedded.pages import (
    RegionCluster,
    cluster_lines,
    content_of,
    docling_box,
    own_box,
)
from ingest_assets.parsing.embedded.scans import needs_ocr
from ingest_assets.parsing.ocr_clock import OcrClock

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
    """At which scale pages are drawn for the detector."""

    kind: ClassVar[str] = "ingest_cdla"
    scale: float = RENDER_SCALE


class EmbeddedLayoutModel(BaseLayoutModel):
    """Regions from the packaged detector, one page per inference."""

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
        regions = self._layout.regions(image)
        width, height = page.size.width, page.size.height
        return LayoutPrediction(
            clusters=[_cluster(at, region, width, height) for at, region in enumerate(regions)]
        )


def _cluster(number: int, region: Region, width: float, height: float) -> Cluster:
    box = BoundingBox(
        l=region.left * width,
        t=region.top * height,
        r=region.right * width,
        b=region.bottom * height,
        coord_origin=CoordOrigin.TOPLEFT,
    )
    return RegionCluster(
        id=number, label=_LABELS[region.label], confidence=region.score, bbox=box, region=region.label
    )


class GeometricTableOptions(BaseTableStructureOptions):
    """Nothing to set: positions decide."""

    kind: ClassVar[str] = "ingest_geometry"


class GeometricTableModel(BaseTableStructureModel):
    """Rows, columns and spans from where words stand and lines are drawn; no text of a table is lost."""

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
    tables = [cluster for cluster in clusters if cluster.label in TABLE_LABELS]
    content = content_of(page) if tables else None
    for cluster in tables:
        assert content is not None
        grid = grid_of(table_words(content, cluster_lines(cluster)), content.rules, own_box(cluster.bbox))
        if grid.rows:
            yield cluster.id, _table(page, cluster, grid)


def _table(page: Page, cluster: Cluster, grid: Grid) -> Table:
    return Table(
        otsl_seq=[],
        table_cells=[_table_cell(cell) for cell in grid.cells],
        num_rows=grid.rows,
        num_cols=grid.columns,
        id=cluster.id,
        page_no=page.page_no,
        cluster=cluster,
        label=cluster.label,
    )


def _table_cell(cell: GridCell) -> TableCell:
    return TableCell(
        bbox=docling_box(cell.box),
        row_span=cell.end_row - cell.row,
        col_span=cell.end_column - cell.column,
        start_row_offset_idx=cell.row,
        end_row_offset_idx=cell.end_row,
        start_col_offset_idx=cell.column,
        end_col_offset_idx=cell.end_column,
        text=cell.text,
        column_header=cell.is_header,
    )


class ScannedPageOcrOptions(RapidOcrOptions):
    """RapidOCR on whole pages, and only on those without a text layer."""

    kind: ClassVar[str] = "ingest_rapidocr"  # type: ignore[assignment]  # the base names only itself


class ScannedPageOcrModel(RapidOcrModel):
    """RapidOCR that leaves pages with a usable text layer alone, within the time a document has for it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.clock = OcrClock()

    def __call__(self, conv_res: ConversionResult, page_batch: Iterable[Page]) -> Iterable[Page]:
        for page in page_batch:
            with self.clock.running():
                read = list(super().__call__(conv_res, [page]))
            yield from read

    @classmethod
    def get_options_type(cls) -> type[RapidOcrOptions]:
        return ScannedPageOcrOptions

    def get_ocr_rects(self, page: Page) -> list[BoundingBox]:
        if page.size is None or not needs_ocr(page):
            return []
        return [
            BoundingBox(l=0, t=0, r=page.size.width, b=page.size.height, coord_origin=CoordOrigin.TOPLEFT)
        ]


def layout_engines() -> dict[str, list[type]]:
    return {"layout_engines": [EmbeddedLayoutModel]}


def table_structure_engines() -> dict[str, list[type]]:
    return {"table_structure_engines": [GeometricTableModel]}


def ocr_engines() -> dict[str, list[type]]:
    return {"ocr_engines": [ScannedPageOcrModel]}
