"""A vector that is not finite, has no direction or another width is rejected, with the chunk's id."""

from typing import Any

import numpy as np
import pytest

from ingest_assets.core.errors import ContractBroken
from ingest_assets.stages.dense import require_vectors


@pytest.mark.parametrize(
    ("returned", "says", "chunk"),
    [
        ([[1.0, 0.0], [0.0, 0.0]], "chunk second is all zeros", "second"),
        ([[1.0, 0.0], [np.nan, 1.0]], "chunk second is not finite, or its length overflows", "second"),
        ([[np.inf, 0.0], [1.0, 1.0]], "chunk first is not finite, or its length overflows", "first"),
        ([[3e38, 3e38], [1.0, 1.0]], "chunk first is not finite, or its length overflows", "first"),
        ([[1.0, 0.0]], "returned 1 vectors for 2 chunks; the first without a vector is second", "second"),
        ([[1.0, 0.0]] * 3, "returned 3 vectors for 2 chunks", "second"),
        ([], "returned 0 vectors for 2 chunks", "first"),
        (None, "returned 0 vectors for 2 chunks", "first"),
        ([[1.0, 0.0], [1.0]], r"chunk second has the shape \(1,\), expected 2 numbers", "second"),
        ([[1.0, 0.0, 0.0], [1.0, 0.0]], r"chunk first has the shape \(3,\)", "first"),
        ([[1.0, 0.0], ["a", "b"]], "does not consist of numbers", "first"),
        ([1.0, 2.0], r"chunk first has the shape \(\)", "first"),
    ],
)
def test_an_invalid_vector_is_rejected(returned: Any, says: str, chunk: str) -> None:
    """The error names the chunk in its message and in its detail."""
    with pytest.raises(ContractBroken, match=says) as raised:
        require_vectors(returned, 2, ["first", "second"])

    assert raised.value.detail == {"chunk_id": chunk}


def test_valid_vectors_are_returned_as_float32() -> None:
    """Also from lists of Python numbers."""
    assert require_vectors([[1, 2], [3, 4.5]], 2, ["a", "b"]).tolist() == [[1, 2], [3, 4.5]]
