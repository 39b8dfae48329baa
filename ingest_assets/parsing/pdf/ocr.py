"""RapidOCR on the pages that need it, in any orientation. Only Docling loads this module."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

import numpy
from docling.datamodel.base_models import Page
from docling.datamodel.document import ConversionResult
from docling.datamodel.pipeline_options import RapidOcrOptions
from docling.models.stages.ocr.rapid_ocr_model import RapidOcrModel
from docling.utils.profiling import TimeRecorder
from docling_core.types.doc import CoordOrigin
from docling_core.types.doc.page import BoundingRectangle, TextCell

from ingest_assets.parsing.libraries import OcrClock
from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.pages import pdf_bytes
from ingest_assets.parsing.pdf.pdfium import render_page
from ingest_assets.parsing.pdf.scans import has_garbled_text, needs_ocr
from ingest_assets.parsing.pdf.turns import TO_UPRIGHT, rotate_back

MOST_VOTES = 8  # lines whose orientation is classified
MIN_CERTAINTY = 0.7  # of the classification as upside down
PADDING = 0.12  # of a line's height, which the detector adds at either end
TALL = 1.5  # height divided by width of a vertical line


class ScannedPageOcrOptions(RapidOcrOptions):
    """RapidOCR on whole pages, only on those without a usable text layer."""

    kind: ClassVar[str] = "ingest_rapidocr"  # type: ignore[assignment]  # the base class allows only its own name


class ScannedPageOcrModel(RapidOcrModel):
    """RapidOCR for pages without a usable text layer, within the document's time limit.

    Its models are loaded for the first such page; most workers never have one.
    """

    def __init__(self, *, enabled: bool, **arguments: Any) -> None:
        super().__init__(enabled=False, **arguments)
        self.enabled = enabled
        self.clock = OcrClock()
        self._arguments = arguments

    @cached_property
    def reader(self) -> Any:  # type: ignore[override]
        """RapidOCR, loaded at first use."""
        return RapidOcrModel(enabled=True, **self._arguments).reader

    @classmethod
    def get_options_type(cls) -> type[RapidOcrOptions]:
        return ScannedPageOcrOptions

    def __call__(self, conv_res: ConversionResult, page_batch: Iterable[Page]) -> Iterable[Page]:
        for page in page_batch:
            is_readable = page._backend is not None and page._backend.is_valid() and page.size is not None
            if self.enabled and is_readable and needs_ocr(page):
                with self.clock.running(), TimeRecorder(conv_res, "ocr"):
                    self._read(page, conv_res)
            yield page

    def _read(self, page: Page, conv_res: ConversionResult) -> None:
        image = self._image(page, conv_res)
        lines = self._lines(image)
        turn = self._turn(image, lines)
        if turn:
            lines = self._lines(image.rotate(TO_UPRIGHT[turn], expand=True))
        size = (image.width / self.scale, image.height / self.scale)
        cells = [self._cell(i, line, turn, size) for i, line in enumerate(lines)]
        self.post_process_cells(cells, page, conv_res)

    def _image(self, page: Page, conv_res: ConversionResult) -> Any:
        """Return the page's image; a garbled text layer is removed and not rendered."""
        assert page._backend is not None
        if has_garbled_text(page):
            if page.parsed_page is not None:
                page.parsed_page.textline_cells, page.parsed_page.word_cells = [], []
            source = pdf_bytes(conv_res)
            rendered = render_page(source, page.page_no, self.scale) if source is not None else None
            if rendered is not None:
                return rendered
        return page._backend.get_page_image(scale=self.scale)

    def _lines(self, image: Any) -> list[tuple[Any, str, float]]:
        """Return corners, text and score of each line."""
        result = self._infer(image, use_det=True, use_cls=False, use_rec=True)
        if result is None or result.boxes is None:
            return []
        return list(zip(result.boxes.tolist(), result.txts, result.scores, strict=True))

    def _turn(self, image: Any, lines: list[tuple[Any, str, float]]) -> int:
        """Return the angle of the page's text: by the shape of its longest lines, then by classification."""
        boxes = [_box(corners) for corners, text, _ in lines if len(text) > 3]
        longest = sorted(boxes, key=lambda box: (-max(box.width, box.height), box.top, box.left))[:MOST_VOTES]
        if not longest:
            return 0
        tall = [box for box in longest if box.height > TALL * box.width]
        sideways = len(tall) > len(longest) / 2
        votes = sum(self._is_upside_down(image, box, sideways) for box in (tall if sideways else longest))
        is_flipped = votes > len(tall if sideways else longest) / 2
        if sideways:
            return 90 if is_flipped else 270
        return 180 if is_flipped else 0

    def _is_upside_down(self, image: Any, box: Box, sideways: bool) -> bool:
        crop = image.crop((box.left, box.top, box.right, box.bottom))
        crop = crop.rotate(90, expand=True) if sideways else crop
        [(label, score)] = self._infer(crop, use_det=False, use_cls=True, use_rec=False).cls_res
        return bool(label == "180" and score > MIN_CERTAINTY)

    def _infer(self, image: Any, **steps: bool) -> Any:
        """Run these steps of RapidOCR; the type of the result depends on them."""
        return self.reader(numpy.asarray(image), **steps)

    def _cell(self, i: int, line: tuple[Any, str, float], turn: int, size: tuple[float, float]) -> TextCell:
        corners, text, score = line
        box = _without_padding(_box(corners))
        scaled = Box(*(edge / self.scale for edge in (box.left, box.top, box.right, box.bottom)))
        return TextCell(
            index=i,
            text=text,
            orig=text,
            confidence=score,
            from_ocr=True,
            rect=_rectangle(rotate_back(scaled, turn, *size), turn),
        )


def _box(corners: Any) -> Box:
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return Box(min(xs), min(ys), max(xs), max(ys))


def _without_padding(box: Box) -> Box:
    """Return a line's box without the padding that the detector adds at both ends."""
    return box.expanded(-min(PADDING * box.height, box.width / 4), 0)


def _rectangle(box: Box, turn: int) -> BoundingRectangle:
    """Return Docling's rectangle, which begins at the start of the text's baseline and follows it."""
    corners = [(box.left, box.bottom), (box.right, box.bottom), (box.right, box.top), (box.left, box.top)]
    first = turn // 90
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = (corners[(first + step) % 4] for step in range(4))
    origin = CoordOrigin.TOPLEFT
    return BoundingRectangle(
        r_x0=x0, r_y0=y0, r_x1=x1, r_y1=y1, r_x2=x2, r_y2=y2, r_x3=x3, r_y3=y3, coord_origin=origin
    )
