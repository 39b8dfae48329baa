"""Long documents in ranges of pages, so that several workers can read one of them."""

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

SHORTEST = 8  # pages that are worth opening a document for once more
RANGES_PER_WORKER = 2  # so that a range of slow pages does not keep the others waiting


@dataclass(frozen=True, slots=True)
class PageRange:
    """From the first to the last page, counted from 1."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ReadPages:
    """Pages that have been read, before anything is decided over the document as a whole."""

    total: int = 0  # pages of the document
    numbers: frozenset[int] = frozenset()  # those that were tried
    pages: tuple[Any, ...] = ()  # Docling's, without what only reading them needs
    errors: tuple[Any, ...] = ()
    sizes: dict[int, Any] = field(default_factory=dict)
    ocr_seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """True when no page is missing."""
        return 0 < self.total == len(self.numbers)

    def packed(self) -> bytes:
        """For another process of the same home."""
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(packed: bytes) -> ReadPages:
    """What `packed` was given; the libraries must be the same, as equal fingerprints say they are."""
    found = pickle.loads(packed)
    assert isinstance(found, ReadPages)
    return found


def together(ranges: Iterable[ReadPages]) -> ReadPages:
    """One of many."""
    known = list(ranges)
    return ReadPages(
        total=max((each.total for each in known), default=0),
        numbers=frozenset().union(*(each.numbers for each in known)),
        pages=tuple(page for each in known for page in each.pages),
        errors=tuple(error for each in known for error in each.errors),
        sizes={number: size for each in known for number, size in each.sizes.items()},
        ocr_seconds=sum(each.ocr_seconds for each in known),
    )


def ranges_of(pages: int, workers: int) -> list[PageRange]:
    """Ranges of about the same length, some for each worker; one range when there is nothing to gain."""
    count = min(RANGES_PER_WORKER * workers, pages // SHORTEST)
    if workers < 2 or count < 2:
        return [PageRange(1, pages)]
    ends = [pages * number // count for number in range(count + 1)]
    return [PageRange(first + 1, last) for first, last in pairwise(ends)]
