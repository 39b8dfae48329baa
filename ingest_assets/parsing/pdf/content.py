"""The engine's input: what a parser, OCR and the detector found on one page."""

from dataclasses import dataclass

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.lines import Word


@dataclass(frozen=True, slots=True)
class Region:
    """An area of the page with the detector's label."""

    label: str
    score: float
    box: Box


@dataclass(frozen=True, slots=True)
class PageContent:
    """One page: its text (as lines and as words), its drawings and the detector's regions."""

    width: float
    height: float
    pieces: tuple[Word, ...] = ()  # lines, or parts of lines
    words: tuple[Word, ...] = ()
    rules: tuple[Box, ...] = ()  # thin straight lines
    drawings: tuple[Box, ...] = ()  # bounding boxes of connected shapes
    bitmaps: tuple[Box, ...] = ()
    regions: tuple[Region, ...] = ()
