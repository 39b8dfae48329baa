"""Cutting new documents into home batches."""

from collections.abc import Iterable, Iterator
from datetime import date

from ingest_assets.model.options import BatchLimits

MEBIBYTE = 1024 * 1024


def batch_key(day: date, number: int) -> str:
    """`YYYY-MM-DD-NNNN`: sorts by time."""
    return f"{day.isoformat()}-{number:04d}"


def next_number(day: date, keys: Iterable[str]) -> int:
    """The first free number of a day."""
    prefix = f"{day.isoformat()}-"
    taken = [int(key.removeprefix(prefix)) for key in keys if key.startswith(prefix)]
    return max(taken, default=0) + 1


def cut(sizes: Iterable[int], limits: BatchLimits, day: date, first_number: int) -> Iterator[str]:
    """One batch key per document, in order; a batch ends at its document or byte limit."""
    number, count, total = first_number, 0, 0
    for size in sizes:
        is_full = count == limits.max_documents or total + size > limits.max_mebibytes * MEBIBYTE
        if count and is_full:
            number, count, total = number + 1, 0, 0
        count, total = count + 1, total + size
        yield batch_key(day, number)
