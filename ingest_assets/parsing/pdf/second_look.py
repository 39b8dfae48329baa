"""What PDFium says of a page where Docling's parser says too little: names of fonts, and the page's picture.

PDFium works for one thread at a time; Docling holds the lock that all its users share.
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

# What a page calls a font, as against what the font is called.
_KEY = re.compile(r"/?[A-Za-z]{1,2}_?\d+(?:_\d+)?|/?null|")
_LONGEST_NAME = 200


def has_nameless_fonts(words: Iterable[Word]) -> bool:
    """Whether a font goes by a page's own name for it, as fonts do that a PDF does not bring along."""
    return any(is_nameless(font) for font in {word.font for word in words})


@cache
def is_nameless(font: str) -> bool:
    """Whether a name says nothing about a font."""
    return bool(_KEY.fullmatch(font))


def with_names(words: Sequence[Word], fonts: Sequence[tuple[Box, str]]) -> tuple[Word, ...]:
    """The words, with the names of the fonts at their places for those that have none."""
    nameless = [word for word in words if is_nameless(word.font)]
    if not nameless or not fonts:
        return tuple(words)
    names = iter(_names_at([word.box for word in nameless], fonts))
    return tuple(
        replace(word, font=next(names) or word.font) if is_nameless(word.font) else word for word in words
    )


def _names_at(boxes: Sequence[Box], fonts: Sequence[tuple[Box, str]]) -> Iterator[str]:
    """For each box the first font whose place, a little larger, holds its middle."""
    places = np.array([(box.left - 1, box.top - 1, box.right + 1, box.bottom + 1) for box, _ in fonts])
    left, top, right, bottom = places.T
    for box in boxes:
        x, y = box.middle_x, box.middle_y
        holding = (left <= x) & (x <= right) & (top <= y) & (y <= bottom)
        first = int(holding.argmax())
        yield fonts[first][1] if holding[first] else ""


def fonts_of(content: bytes, page_no: int) -> list[tuple[Box, str]]:
    """Where each piece of a page's text stands, and the name of its font; nothing if PDFium cannot tell."""
    import pypdfium2.raw as pdfium

    found: list[tuple[Box, str]] = []
    with _page(content, page_no) as page:
        for text in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_TEXT]) if page is not None else ():
            name = ctypes.create_string_buffer(_LONGEST_NAME)
            font = pdfium.FPDFTextObj_GetFont(text.raw)
            if pdfium.FPDFFont_GetBaseFontName(font, name, _LONGEST_NAME):
                left, bottom, right, top = text.get_bounds()
                height = page.get_height()
                box = Box(left, height - top, right, height - bottom)
                found.append((box, name.value.decode("utf-8", "replace")))
    return found


def picture_of(content: bytes, page_no: int, scale: float) -> Any:
    """The page as PDFium draws it, which needs no names for its characters; None if it cannot."""
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
