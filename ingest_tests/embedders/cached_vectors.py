"""Vectors and texts for the tests of the cache."""

import numpy as np

PLENTY = 64 * 1024 * 1024
LITTLE = 1024 * 1024
DIM = 384


def made_vectors(number: int, seed: int = 0) -> np.ndarray:
    """Random vectors, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal((number, DIM)).astype(np.float32)


def some_texts(number: int) -> list[str]:
    """Distinct texts."""
    return [f"text {index}" for index in range(number)]


def are_same(actual: list[np.ndarray | None], expected: np.ndarray) -> list[bool]:
    """Return for each vector whether it is bit-equal to the expected one."""
    return [
        vector is not None and vector.tobytes() == row.tobytes()
        for vector, row in zip(actual, expected, strict=True)
    ]
