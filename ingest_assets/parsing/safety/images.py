"""Pictures: their dimensions and frames by their headers, before any pixel is unpacked."""

import struct
import warnings
from io import BytesIO

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.errors import CorruptDocument, DecompressionBomb, TooManyPages

MEGAPIXEL = 1_000_000
_UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    EOFError,
    struct.error,
    OverflowError,
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
            check_pixels(*image.size, options)
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


def check_pixels(width: int, height: int, options: ParsingOptions) -> None:
    """Refuse a picture of this size."""
    if width * height > options.max_image_megapixels * MEGAPIXEL:
        raise _too_many_pixels(options)
    if max(width, height) > options.max_image_side:
        raise DecompressionBomb(
            f"The image is {width} x {height} pixels, and no side may have more than "
            f"{options.max_image_side}; cut it into pieces or raise parsing.max_image_side."
        )


def _too_many_pixels(options: ParsingOptions) -> DecompressionBomb:
    return DecompressionBomb(
        f"The image has more than the {options.max_image_megapixels} million pixels allowed; "
        "scale it down or raise parsing.max_image_megapixels."
    )
