"""Which pages need OCR. Works on Docling's page objects without importing Docling."""

from typing import Any

from ingest_assets.parsing.pdf.garbled_text import is_garbled

MIN_BITMAP_SHARE = 0.5


def needs_ocr(page: Any) -> bool:
    """True without a usable text layer, or with a bitmap over half of the page that has no text on it."""
    backend = page._backend
    cells = [cell for cell in backend.get_text_cells() if cell.text.strip()]
    bitmaps = list(backend.get_bitmap_rects())
    if not cells:
        return bool(bitmaps) or bool(backend.get_connected_shape_bounding_boxes())
    if has_garbled_text(page):
        return True
    area = page.size.width * page.size.height
    scans = [box for box in bitmaps if box.area() > MIN_BITMAP_SHARE * area]
    words = [cell.rect.to_bounding_box() for cell in cells] if scans else []
    return any(not any(_is_on(word, scan) for word in words) for scan in scans)


def has_garbled_text(page: Any) -> bool:
    """True if the page has a text layer that is not readable."""
    return is_garbled(cell.text for cell in page._backend.get_text_cells())


def _is_on(word: Any, scan: Any) -> bool:
    middle_x, middle_y = (word.l + word.r) / 2, (word.t + word.b) / 2
    return bool(scan.l <= middle_x <= scan.r and scan.t <= middle_y <= scan.b)
