"""Pictures: their dimensions and frames by their headers, before any pixel is unpacked."""

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
_DAMAGED = "The image is damaged, or not of the kind it says; get an intact copy."


def limit_pillow(options: ParsingOptions) -> None:
    """Pillow refuses what has twice its own limit, wherever a document makes it open a picture.

    It has one limit for the whole process: set it before each document.
    """
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = options.max_image_megapixels * MEGAPIXEL // 2
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)


def check_image(content: bytes, options: ParsingOptions) -> None:
    """Refuse too many pixels, too long a side and too many frames."""
    from PIL import Image

    limit_pillow(options)
    try:
        with Image.open(BytesIO(content)) as image:
            width, height = image.size
            if width * height > options.max_image_megapixels * MEGAPIXEL:
                raise _too_many_pixels(options)
            if max(width, height) > options.max_image_side:
                raise DecompressionBomb(
                    f"The image is {width} x {height} pixels, and no side may have more than "
                    f"{options.max_image_side}; cut it into pieces or raise parsing.max_image_side."
                )
            frames = getattr(image, "n_frames", 1)
    except Image.DecompressionBombError:
        raise _too_many_pixels(options) from None
    except _UNREADABLE as error:
        raise CorruptDocument(_DAMAGED) from error
    if frames > options.max_pages:
        raise TooManyPages(
            f"The image has {frames} frames, more than the {options.max_pages} allowed; "
            "split it or raise parsing.max_pages."
        )


def _too_many_pixels(options: ParsingOptions) -> DecompressionBomb:
    return DecompressionBomb(
        f"The image has more than the {options.max_image_megapixels} million pixels allowed; "
        "scale it down or raise parsing.max_image_megapixels."
    )


# Pictures as pages of a size that pages have: not metres wide because nobody said how large a pixel is.

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
