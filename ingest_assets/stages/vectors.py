"""What a provider gave is looked at before it is stored: a bad vector would poison every search."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ingest_assets.model.errors import ContractBroken, ItemError


def require_vectors(given: Any, dim: int, chunk_ids: Sequence[str]) -> np.ndarray:
    """Float32 rows of the promised width, one per chunk, each a direction; or an error that names a chunk."""
    _require_count(given, chunk_ids)
    for row, chunk_id in zip(given, chunk_ids, strict=True):
        if np.shape(row) != (dim,):
            raise _broken(f"has the shape {np.shape(row)}, not {dim} numbers", chunk_id)
    try:
        vectors = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError):
        raise _broken("is not made of numbers", chunk_ids[0]) from None
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(vectors, axis=1)
    for index in np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))[:1]:
        fault = "is all zeros" if norms[index] == 0 else "is not finite, or too long to measure"
        raise _broken(fault, chunk_ids[int(index)])
    return vectors


def is_direction(given: Any, dim: int) -> bool:
    """True for a vector that may be stored."""
    try:
        vector = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        norm = np.linalg.norm(vector)
    return vector.shape == (dim,) and bool(np.isfinite(norm) and norm > 0)


def _require_count(given: Any, chunk_ids: Sequence[str]) -> None:
    number = len(given) if hasattr(given, "__len__") else 0
    if number != len(chunk_ids):
        first = chunk_ids[min(number, len(chunk_ids) - 1)]
        raise ContractBroken(
            f"The model gave {number} vectors for {len(chunk_ids)} chunks, from chunk {first} on.",
            detail={"chunk_id": first},
        )


def _broken(fault: str, chunk_id: str) -> ContractBroken:
    return ContractBroken(f"The vector of chunk {chunk_id} {fault}.", detail={"chunk_id": chunk_id})


def of_chunk(error: ItemError, chunk_ids: Sequence[str]) -> ItemError:
    """The same error, which says of which chunk it is."""
    index = error.detail.get("index")
    if not isinstance(index, int) or not 0 <= index < len(chunk_ids):
        return error
    detail = {key: value for key, value in error.detail.items() if key != "index"}
    return type(error)(f"Chunk {chunk_ids[index]}: {error}", detail={**detail, "chunk_id": chunk_ids[index]})
