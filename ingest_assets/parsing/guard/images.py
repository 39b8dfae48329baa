"""Image checks: dimensions and frames from the header, before pixels are decoded."""

import struct
import warnings
from functools import cache
from io import BytesIO
from typing import Any

from ingest_assets.parsing.errors import CorruptDocument, DecompressionBomb, TooManyPages
from ingest_assets.parsing.guard.limits import MEGAPIXEL
from ingest_assets.settings.parsing import ParsingOptions

_UNREADABLE = (
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError),
    *(struct.error, OverflowError),
)
_DAMAGED = "The image is damaged or is not of its declared type. Replace it with an intact copy."


def limit_pillow(options: ParsingOptions) -> None:
    """Set Pillow's pixel limit, which also applies to images inside documents.

    The limit is global to the process, so set it before each document. Pillow raises at twice the limit.
    """
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = options.max_image_megapixels * MEGAPIXEL // 2
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)


def check_image(content: bytes, options: ParsingOptions) -> None:
    """Refuse an image with too many pixels, a side that is too long, or too many frames."""
    from PIL import Image

    limit_pillow(options)
    try:
        with Image.open(BytesIO(content)) as image:
            width, height = image.size
            if width * height > options.max_image_megapixels * MEGAPIXEL:
                raise _too_many_pixels(options)
            if max(width, height) > options.max_image_side:
                raise DecompressionBomb(
                    f"A side of the image is too long: {width} x {height} pixels (limit "
                    f"{options.max_image_side}). Cut it into pieces or raise parsing.max_image_side."
                )
            frames = getattr(image, "n_frames", 1)
    except Image.DecompressionBombError:
        raise _too_many_pixels(options) from None
    except _UNREADABLE as error:
        raise CorruptDocument(_DAMAGED) from error
    if frames > options.max_pages:
        raise TooManyPages(
            f"The image has too many frames: {frames} (limit {options.max_pages}). "
            "Split it or raise parsing.max_pages."
        )


def _too_many_pixels(options: ParsingOptions) -> DecompressionBomb:
    return DecompressionBomb(
        f"The image has too many pixels (limit {options.max_image_megapixels} million). "
        "Scale it down or raise parsing.max_image_megapixels."
    )


# Images as pages of a plausible size: a missing or wrong resolution would make pages metres wide.

MAX_PAGE_POINTS = 1400.0  # a little more than A3; at OCR's scale, more pixels than OCR uses
_PLAUSIBLE_DPI = (20.0, 9600.0)
_MAX_UNEVEN = 4.0  # fax machines have twice as many dots across as down
_POINTS_PER_INCH = 72.0


@cache
def image_backend() -> Any:
    """Return Docling's image backend class with `page_dpi` in place of the declared resolution."""
    from docling.backend.image_backend import ImageDocumentBackend

    class SizedImages(ImageDocumentBackend):
        """Makes each frame a page of plausible size."""

        def load_page(self, page_no: int) -> Any:
            page = super().load_page(page_no)
            assert page._image is not None
            page._dpi = page_dpi(page._image.size, page._dpi)
            return page

    return SizedImages


def page_dpi(size: tuple[int, int], declared: tuple[float, float]) -> tuple[float, float]:
    """Return the declared resolution if plausible, else 72 dpi; increase it where the page is too large."""
    across, down = declared
    least, most = min(declared), max(declared)
    if least < _PLAUSIBLE_DPI[0] or most > _PLAUSIBLE_DPI[1] or most > least * _MAX_UNEVEN:
        across = down = _POINTS_PER_INCH
    points = max(size[0] * _POINTS_PER_INCH / across, size[1] * _POINTS_PER_INCH / down)
    factor = max(1.0, points / MAX_PAGE_POINTS)
    return across * factor, down * factor
