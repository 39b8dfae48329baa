"""Docling's PDF pipeline with the embedded engine in it. Only Docling loads this module.

Docling has plug-ins for single models (see `parsing.plugin`), not for the steps between them. Three of those
are the engine's own: after OCR, a page's text becomes blocks; before the document is put together, it decides
as a whole what is a heading and what is furniture; and the blocks of a page are read column by column.
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

from ingest_assets.parsing.page_range_pipeline import RangedPdfPipeline
from ingest_assets.parsing.pdf.blocks import Block, blocks_of
from ingest_assets.parsing.pdf.code import code_text
from ingest_assets.parsing.pdf.document import heading_levels, labelled, orders
from ingest_assets.parsing.pdf.own_models import only_own_models
from ingest_assets.parsing.pdf.pages import BlockCluster, clusters_of, content_of_named, page_turn
from ingest_assets.parsing.pdf.turns import upright_content


class EmbeddedPdfPipeline(RangedPdfPipeline):
    """Docling's own, but for how regions become blocks and what is decided over the whole document."""

    def _init_models(self) -> None:
        with only_own_models():
            super()._init_models()
        self.preprocessing_model = TextOnly(options=self.preprocessing_model.options)
        self.layout_postprocessing_model = BlocksModel(options=LayoutPostprocessorOptions())
        self.reading_order_model.ro_model = GivenOrder()

    def _assemble_document(self, conv_res: ConversionResult) -> ConversionResult:
        levels = _arrange(conv_res.pages)
        result = super()._assemble_document(conv_res)
        headings = [item for item in result.document.texts if isinstance(item, SectionHeaderItem)]
        for heading, level in zip(headings, levels, strict=False):
            heading.level = level
        for item in result.document.texts:
            if isinstance(item, CodeItem):
                item.captions = []  # it stays below the code; export_to_doctags stumbles over a caption
            if item.label == DocItemLabel.FORMULA and not item.text:
                item.text = item.orig  # nobody decodes it here; its signs are better than nothing
        return result


class TextOnly(PagePreprocessingModel):
    """Leaves rendering to the layout model, which asks for the one picture that it needs."""

    def _populate_page_images(self, page: Page) -> Page:
        return page


class BlocksModel(LayoutPostprocessingModel):
    """Blocks from a page's text and the detector's regions, in place of Docling's own post-processing."""

    def postprocess_layout(
        self, conv_res: ConversionResult, pages: Sequence[Page]
    ) -> Sequence[LayoutPrediction]:
        return [self._predict(conv_res, page) for page in pages]

    def _predict(self, conv_res: ConversionResult, page: Page) -> LayoutPrediction:
        if page._backend is None or not page._backend.is_valid() or page.size is None:
            return LayoutPrediction()
        turn = page_turn(page)
        content = upright_content(content_of_named(page, conv_res), turn)
        if turn and all(cell.from_ocr for cell in page.cells):
            content = replace(content, regions=())  # found on a picture that lay on its side
        clusters = clusters_of(blocks_of(content), page, turn)
        for cluster in clusters:
            if isinstance(cluster, BlockCluster) and cluster.label in TABLE_LABELS:
                cluster.content = content
        self._update_layout_score(conv_res, page, clusters)
        return LayoutPrediction(clusters=clusters)


class GivenOrder(ReadingOrderPredictor):
    """The elements come in reading order already; what is the caption of what is still found by Docling."""

    def predict_reading_order(
        self, page_elements: list[PageElement], page_separators: list[SeparatorElement] | None = None
    ) -> list[PageElement]:
        return list(page_elements)


def _arrange(pages: Sequence[Page]) -> list[int]:
    """Give the pages' elements their final labels and put them into reading order; the headings' levels."""
    units = [page.assembled for page in pages if page.assembled is not None]
    heights = [_upright_height(page) for page in pages if page.assembled is not None]
    blocks = [[_block(element) for element in unit.elements] for unit in units]
    final = labelled(list(zip(heights, blocks, strict=True)))
    for unit, own, order in zip(units, final, orders(final), strict=True):
        for element, block in zip(unit.elements, own, strict=True):
            if isinstance(element, TextElement):
                _relabel(element, block)
        unit.elements = [unit.elements[at] for at in order]
    return heading_levels([own[at] for own, order in zip(final, orders(final), strict=True) for at in order])


def _upright_height(page: Page) -> float:
    """How high a page is when its text stands upright."""
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
