"""A vector that is no direction of the promised width is refused, with the chunk's name."""

from typing import Any

import numpy as np
import pytest

from ingest_assets.core.errors import ContractBroken
from ingest_assets.stages.dense import require_vectors


@pytest.mark.parametrize(
    ("given", "says", "chunk"),
    [
        ([[1.0, 0.0], [0.0, 0.0]], "chunk second is all zeros", "second"),
        ([[1.0, 0.0], [np.nan, 1.0]], "chunk second is not finite, or too long to measure", "second"),
        ([[np.inf, 0.0], [1.0, 1.0]], "chunk first is not finite, or too long to measure", "first"),
        ([[3e38, 3e38], [1.0, 1.0]], "chunk first is not finite, or too long to measure", "first"),
        ([[1.0, 0.0]], "gave 1 vectors for 2 chunks, from chunk second on", "second"),
        ([[1.0, 0.0]] * 3, "gave 3 vectors for 2 chunks", "second"),
        ([], "gave 0 vectors for 2 chunks", "first"),
        (None, "gave 0 vectors for 2 chunks", "first"),
        ([[1.0, 0.0], [1.0]], r"chunk second has the shape \(1,\), not 2 numbers", "second"),
        ([[1.0, 0.0, 0.0], [1.0, 0.0]], r"chunk first has the shape \(3,\)", "first"),
        ([[1.0, 0.0], ["a", "b"]], "is not made of numbers", "first"),
        ([1.0, 2.0], r"chunk first has the shape \(\)", "first"),
    ],
)
def test_a_vector_that_is_no_direction_is_refused(given: Any, says: str, chunk: str) -> None:
    """The error names the chunk, in words and for programs."""
    with pytest.raises(ContractBroken, match=says) as raised:
        require_vectors(given, 2, ["first", "second"])

    assert raised.value.detail == {"chunk_id": chunk}


def test_good_vectors_are_float32_as_given() -> None:
    """Also from lists of Python numbers."""
    assert require_vectors([[1, 2], [3, 4.5]], 2, ["a", "b"]).tolist() == [[1, 2], [3, 4.5]]
