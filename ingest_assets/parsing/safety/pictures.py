"""Pictures as pages of a size that pages have: not metres wide because nobody said how large a pixel is."""

from functools import cache
from typing import Any

MAX_PAGE_POINTS = 1400.0  # a little more than A3; at the scale of OCR more pixels than it looks at
_PLAUSIBLE_DPI = (20.0, 9600.0)
_MAX_UNEVEN = 4.0  # fax machines have twice as many dots across as down
_POINTS_PER_INCH = 72.0


@cache
def image_backend() -> Any:
    """Docling's reader of images, with `page_dpi` for the resolution that the file claims."""
    from docling.backend.image_backend import ImageDocumentBackend

    class SizedImages(ImageDocumentBackend):
        """Each frame a page of plausible size."""

        def load_page(self, page_no: int) -> Any:
            page = super().load_page(page_no)
            assert page._image is not None
            page._dpi = page_dpi(page._image.size, page._dpi)
            return page

    return SizedImages


def page_dpi(size: tuple[int, int], claimed: tuple[float, float]) -> tuple[float, float]:
    """The claimed resolution if it can be true, and more where the page would be too large."""
    across, down = claimed
    least, most = min(claimed), max(claimed)
    if least < _PLAUSIBLE_DPI[0] or most > _PLAUSIBLE_DPI[1] or most > least * _MAX_UNEVEN:
        across = down = _POINTS_PER_INCH
    points = max(size[0] * _POINTS_PER_INCH / across, size[1] * _POINTS_PER_INCH / down)
    larger = max(1.0, points / MAX_PAGE_POINTS)
    return across * larger, down * larger
