"""Duplicate claims: what a document says of its text, and how it stands to the documents before it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """What one document says. `basis` tells for which bytes and settings; `bands` only where alike counts."""

    doc_id: str
    seq: int
    basis: str
    text_hash: str | None
    is_eligible: bool
    signature: bytes | None = None
    bands: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """How a document stands to the others: the one whose text it repeats, or is alike to."""

    basis: str
    duplicate_of: str | None = None
    near_duplicate_of: str | None = None
    similarity: float | None = None
    is_eligible: bool = True


@dataclass(frozen=True, slots=True)
class Alike:
    """From which similarity on two documents are alike, and how the similarity of signatures is computed."""

    threshold: float
    similarity: Callable[[bytes, bytes], float]
