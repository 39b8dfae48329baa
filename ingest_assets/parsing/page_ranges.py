"""Page ranges of long documents, so that several workers can read one document."""

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

MIN_RANGE_PAGES = 8  # with fewer, opening the document again costs more than it gains
RANGES_PER_WORKER = 2  # balances the load when some pages are slow


@dataclass(frozen=True, slots=True)
class PageRange:
    """The first and the last page, counted from 1."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ReadPages:
    """Pages that have been read, before the document is assembled."""

    total: int = 0  # pages of the document
    numbers: frozenset[int] = frozenset()  # attempted pages
    pages: tuple[Any, ...] = ()  # Docling's pages
    errors: tuple[Any, ...] = ()
    sizes: dict[int, Any] = field(default_factory=dict)
    ocr_seconds: float = 0.0

    @property
    def is_complete(self) -> bool:
        """True if all pages have been read."""
        return 0 < self.total == len(self.numbers)

    def pack(self) -> bytes:
        """Serialize for another process of the same home."""
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(packed: bytes) -> ReadPages:
    """Restore what `pack` serialized; equal fingerprints ensure that the libraries are the same."""
    pages = pickle.loads(packed)
    assert isinstance(pages, ReadPages)
    return pages


def merge_pages(ranges: Iterable[ReadPages]) -> ReadPages:
    """Merge the pages of several ranges."""
    parts = list(ranges)
    return ReadPages(
        total=max((part.total for part in parts), default=0),
        numbers=frozenset().union(*(part.numbers for part in parts)),
        pages=tuple(page for part in parts for page in part.pages),
        errors=tuple(error for part in parts for error in part.errors),
        sizes={number: size for part in parts for number, size in part.sizes.items()},
        ocr_seconds=sum(part.ocr_seconds for part in parts),
    )


def split_pages(pages: int, workers: int) -> list[PageRange]:
    """Split into ranges of similar length, several per worker; one for a short document or one worker."""
    count = min(RANGES_PER_WORKER * workers, pages // MIN_RANGE_PAGES)
    if workers < 2 or count < 2:
        return [PageRange(1, pages)]
    ends = [pages * number // count for number in range(count + 1)]
    return [PageRange(first + 1, last) for first, last in pairwise(ends)]
