"""What a parser, OCR and the detector found on one page: all that the embedded engine decides from."""

from dataclasses import dataclass

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.lines import Word


@dataclass(frozen=True, slots=True)
class Region:
    """An area of the page that the detector gave a name to."""

    label: str
    score: float
    box: Box


@dataclass(frozen=True, slots=True)
class PageContent:
    """One page: its text twice (in lines, in words), what is drawn on it, and the detector's regions."""

    width: float
    height: float
    pieces: tuple[Word, ...] = ()  # lines, or parts of lines
    words: tuple[Word, ...] = ()
    rules: tuple[Box, ...] = ()  # thin straight lines
    drawings: tuple[Box, ...] = ()  # everything drawn, as boxes around what hangs together
    bitmaps: tuple[Box, ...] = ()
    regions: tuple[Region, ...] = ()
