"""Docling's PDF pipeline in two steps that different processes can do: its pages, then the document.

Imports Docling, so it stands apart from `page_ranges.py`, which planning imports.
"""

from docling.datamodel.base_models import ConversionStatus
from docling.datamodel.document import ConversionResult, InputDocument
from docling.pipeline.standard_pdf_pipeline import StandardPdfPipeline

from ingest_assets.parsing.page_ranges import ReadPages


class RangedPdfPipeline(StandardPdfPipeline):
    """Takes pages that were read before as if it had read them itself. One document at a time."""

    given: ReadPages = ReadPages()  # of the document that comes next
    _passed_over: frozenset[int] = frozenset()

    def pages_of(self, source: InputDocument) -> ReadPages:
        """The pages in the range of the input, and nothing that concerns the document as a whole."""
        result = ConversionResult(input=source)
        try:
            numbers = frozenset(self._get_expected_page_nos(result))
            result = self._build_document(result)
            return ReadPages(
                total=source.page_count,
                numbers=numbers,
                pages=tuple(result.pages),
                errors=tuple(result.errors),
                sizes=dict(result._page_sizes_by_no),
            )
        finally:
            self._unload(result)

    def _build_document(self, conv_res: ConversionResult) -> ConversionResult:
        wanted = self._get_expected_page_nos(conv_res)
        if self.given.numbers.isdisjoint(wanted):
            return super()._build_document(conv_res)
        if not self.given.numbers.issuperset(wanted):
            self._passed_over = self.given.numbers
            try:
                conv_res = super()._build_document(conv_res)
            finally:
                self._passed_over = frozenset()
        conv_res.pages = sorted((*conv_res.pages, *self.given.pages), key=lambda page: page.page_no)
        conv_res.errors.extend(self.given.errors)
        conv_res._page_sizes_by_no.update(self.given.sizes)
        conv_res.status = ConversionStatus.SUCCESS if conv_res.pages else ConversionStatus.FAILURE
        return conv_res

    def _get_expected_page_nos(self, conv_res: ConversionResult) -> list[int]:
        """Also the pages that are known: of such a document, only what is missing is opened."""
        in_range = super()._get_expected_page_nos(conv_res)
        return sorted(self.given.numbers.union(in_range) - self._passed_over)
