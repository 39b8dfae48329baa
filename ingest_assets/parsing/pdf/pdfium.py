"""What Docling's parser lacks, from PDFium: names of fonts and images of pages with garbled text.

PDFium is not thread-safe; the lock is Docling's, so that all users share it.
"""

import ctypes
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.lines import Word

# A page's resource key for a font, which is not the font's name.
_KEY = re.compile(r"/?[A-Za-z]{1,2}_?\d+(?:_\d+)?|/?null|")
_LONGEST_NAME = 200


def has_unnamed_fonts(words: Iterable[Word]) -> bool:
    """True if a font has only a resource key for a name, as with fonts that are not embedded."""
    return any(is_placeholder(font) for font in {word.font for word in words})


@cache
def is_placeholder(font: str) -> bool:
    """True if a name is empty or only a resource key."""
    return bool(_KEY.fullmatch(font))


def with_font_names(words: Sequence[Word], fonts: Sequence[tuple[Box, str]]) -> tuple[Word, ...]:
    """Return the words; those without a font name get that of the font at their position."""
    nameless = [word for word in words if is_placeholder(word.font)]
    if not nameless or not fonts:
        return tuple(words)
    names = iter(_names_at([word.box for word in nameless], fonts))
    return tuple(
        replace(word, font=next(names) or word.font) if is_placeholder(word.font) else word for word in words
    )


def _names_at(boxes: Sequence[Box], fonts: Sequence[tuple[Box, str]]) -> Iterator[str]:
    """Yield for each box the first font whose box, slightly enlarged, contains its centre."""
    places = np.array([(box.left - 1, box.top - 1, box.right + 1, box.bottom + 1) for box, _ in fonts])
    left, top, right, bottom = places.T
    for box in boxes:
        x, y = box.middle_x, box.middle_y
        containing = (left <= x) & (x <= right) & (top <= y) & (y <= bottom)
        first = int(containing.argmax())
        yield fonts[first][1] if containing[first] else ""


def page_fonts(content: bytes, page_no: int) -> list[tuple[Box, str]]:
    """Return box and font name of each piece of a page's text; empty if PDFium cannot read it."""
    import pypdfium2.raw as pdfium

    fonts: list[tuple[Box, str]] = []
    with _page(content, page_no) as page:
        for text in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_TEXT]) if page is not None else ():
            name = ctypes.create_string_buffer(_LONGEST_NAME)
            font = pdfium.FPDFTextObj_GetFont(text.raw)
            if pdfium.FPDFFont_GetBaseFontName(font, name, _LONGEST_NAME):
                left, bottom, right, top = text.get_bounds()
                height = page.get_height()
                box = Box(left, height - top, right, height - bottom)
                fonts.append((box, name.value.decode("utf-8", "replace")))
    return fonts


def render_page(content: bytes, page_no: int, scale: float) -> Any:
    """Return the page as rendered by PDFium, which needs no character codes; None if it cannot."""
    with _page(content, page_no) as page:
        return None if page is None else page.render(scale=scale).to_pil().convert("RGB")


@contextmanager
def _page(content: bytes, page_no: int) -> Iterator[Any]:
    import pypdfium2
    from docling.utils.locks import pypdfium2_lock

    with pypdfium2_lock:
        try:
            document = pypdfium2.PdfDocument(content)
        except pypdfium2.PdfiumError:
            yield None
            return
        try:
            yield document[page_no - 1] if page_no <= len(document) else None
        finally:
            document.close()
