"""Docling's PDF pipeline with the embedded engine. Only Docling loads this module.

Docling has plugins for single models (see `parsing.plugin`), not for the steps between them. This pipeline
replaces three of those: after OCR, a page's text is grouped into blocks; before the document is assembled,
headings and page furniture are decided over all pages; and the blocks of a page are sorted column by column.
"""

from collections.abc import Sequence
from dataclasses import replace

from docling.datamodel.base_models import BasePageElement, LayoutPrediction, Page, TextElement
from docling.datamodel.document import ConversionResult
from docling.datamodel.pipeline_options import LayoutPostprocessorOptions
from docling.models.base_layout_model import TABLE_LABELS
from docling.models.postprocessing.reading_order_rb import (
    PageElement,
    ReadingOrderPredictor,
    SeparatorElement,
)
from docling.models.stages.layout.layout_postprocessing_model import LayoutPostprocessingModel
from docling.models.stages.page_preprocessing.page_preprocessing_model import PagePreprocessingModel
from docling_core.types.doc import CodeItem, DocItemLabel, SectionHeaderItem

from ingest_assets.parsing.page_range_pipeline import PageRangePipeline
from ingest_assets.parsing.pdf.blocks import Block, blocks_of
from ingest_assets.parsing.pdf.code import code_text
from ingest_assets.parsing.pdf.document import heading_levels, label_blocks, reading_orders
from ingest_assets.parsing.pdf.pages import BlockCluster, clusters_of, page_content_with_fonts, page_turn
from ingest_assets.parsing.pdf.registries import embedded_models_only
from ingest_assets.parsing.pdf.turns import upright_content


class EmbeddedPdfPipeline(PageRangePipeline):
    """Docling's pipeline with our own blocks, document-wide labels and reading order."""

    def _init_models(self) -> None:
        with embedded_models_only():
            super()._init_models()
        self.preprocessing_model = PreprocessWithoutImages(options=self.preprocessing_model.options)
        self.layout_postprocessing_model = BlocksModel(options=LayoutPostprocessorOptions())
        self.reading_order_model.ro_model = KnownReadingOrder()

    def _assemble_document(self, conv_res: ConversionResult) -> ConversionResult:
        levels = _label_and_sort(conv_res.pages)
        result = super()._assemble_document(conv_res)
        headings = [item for item in result.document.texts if isinstance(item, SectionHeaderItem)]
        for heading, level in zip(headings, levels, strict=False):
            heading.level = level
        for item in result.document.texts:
            if isinstance(item, CodeItem):
                item.captions = []  # the text stays below the code; Docling's DocTags export fails at it
            if item.label == DocItemLabel.FORMULA and not item.text:
                item.text = item.orig  # no model decodes formulas; keep their characters
        return result


class PreprocessWithoutImages(PagePreprocessingModel):
    """Leaves rendering to the layout model, which requests the one image that it needs."""

    def _populate_page_images(self, page: Page) -> Page:
        return page


class BlocksModel(LayoutPostprocessingModel):
    """Builds blocks from a page's text and the detector's regions; replaces Docling's post-processing."""

    def postprocess_layout(
        self, conv_res: ConversionResult, pages: Sequence[Page]
    ) -> Sequence[LayoutPrediction]:
        return [self._predict(conv_res, page) for page in pages]

    def _predict(self, conv_res: ConversionResult, page: Page) -> LayoutPrediction:
        if page._backend is None or not page._backend.is_valid() or page.size is None:
            return LayoutPrediction()
        turn = page_turn(page)
        content = upright_content(page_content_with_fonts(page, conv_res), turn)
        if turn and all(cell.from_ocr for cell in page.cells):
            content = replace(content, regions=())  # detected on an image that was not upright
        clusters = clusters_of(blocks_of(content), page, turn)
        for cluster in clusters:
            if isinstance(cluster, BlockCluster) and cluster.label in TABLE_LABELS:
                cluster.content = content
        self._update_layout_score(conv_res, page, clusters)
        return LayoutPrediction(clusters=clusters)


class KnownReadingOrder(ReadingOrderPredictor):
    """Keeps the order, which is final already. Docling still assigns captions to their elements."""

    def predict_reading_order(
        self, page_elements: list[PageElement], page_separators: list[SeparatorElement] | None = None
    ) -> list[PageElement]:
        return list(page_elements)


def _label_and_sort(pages: Sequence[Page]) -> list[int]:
    """Set final labels and sort each page's elements in reading order; return the headings' levels."""
    units = [page.assembled for page in pages if page.assembled is not None]
    heights = [_upright_height(page) for page in pages if page.assembled is not None]
    blocks = [[_block(element) for element in unit.elements] for unit in units]
    final = label_blocks(list(zip(heights, blocks, strict=True)))
    for unit, labelled, order in zip(units, final, reading_orders(final), strict=True):
        for element, block in zip(unit.elements, labelled, strict=True):
            if isinstance(element, TextElement):
                _relabel(element, block)
        unit.elements = [unit.elements[i] for i in order]
    return heading_levels(
        [labelled[i] for labelled, order in zip(final, reading_orders(final), strict=True) for i in order]
    )


def _upright_height(page: Page) -> float:
    """Return the page's height when its text is upright."""
    assert page.size is not None
    clusters = [element.cluster for element in page.assembled.elements] if page.assembled else []
    is_sideways = any(isinstance(cluster, BlockCluster) and cluster.turn in (90, 270) for cluster in clusters)
    return page.size.width if is_sideways else page.size.height


def _block(element: BasePageElement) -> Block:
    assert isinstance(element.cluster, BlockCluster)
    block: Block = element.cluster.block
    return block


def _relabel(element: TextElement, block: Block) -> None:
    element.label = element.cluster.label = DocItemLabel(block.label)
    if block.label == "code":
        element.text = code_text(block.lines)
