"""Docling's PDF pipeline in two steps for different processes: read pages, then assemble the document.

It imports Docling, so it is separate from `page_ranges.py`, which planning imports.
"""

from docling.datamodel.base_models import ConversionStatus
from docling.datamodel.document import ConversionResult, InputDocument
from docling.pipeline.standard_pdf_pipeline import StandardPdfPipeline

from ingest_assets.parsing.page_ranges import ReadPages


class PageRangePipeline(StandardPdfPipeline):
    """Reads pages, or uses pages that another process has read. One document at a time."""

    known_pages: ReadPages = ReadPages()  # of the next document
    _skipped: frozenset[int] = frozenset()

    def read_pages(self, source: InputDocument) -> ReadPages:
        """Read the pages in the range of the input without assembling the document."""
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
        known = self.known_pages
        expected = self._get_expected_page_nos(conv_res)
        if known.numbers.isdisjoint(expected):
            return super()._build_document(conv_res)
        if not known.numbers.issuperset(expected):
            self._skipped = known.numbers
            try:
                conv_res = super()._build_document(conv_res)
            finally:
                self._skipped = frozenset()
        conv_res.pages = sorted((*conv_res.pages, *known.pages), key=lambda page: page.page_no)
        conv_res.errors.extend(known.errors)
        conv_res._page_sizes_by_no.update(known.sizes)
        conv_res.status = ConversionStatus.SUCCESS if conv_res.pages else ConversionStatus.FAILURE
        return conv_res

    def _get_expected_page_nos(self, conv_res: ConversionResult) -> list[int]:
        """Return the known pages too, except while the missing pages are read."""
        in_range = super()._get_expected_page_nos(conv_res)
        return sorted(self.known_pages.numbers.union(in_range) - self._skipped)
