"""Vectors to be remembered, and what the tests of the cache ask of them."""

import numpy as np

PLENTY = 64 * 1024 * 1024
LITTLE = 1024 * 1024
DIM = 384


def made_vectors(number: int, seed: int = 0) -> np.ndarray:
    """Random ones, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal((number, DIM)).astype(np.float32)


def some_texts(number: int) -> list[str]:
    """Different ones."""
    return [f"text {index}" for index in range(number)]


def are_same(found: list[np.ndarray | None], expected: np.ndarray) -> list[bool]:
    """Of each vector whether it is bit for bit the expected one."""
    return [
        vector is not None and vector.tobytes() == row.tobytes()
        for vector, row in zip(found, expected, strict=True)
    ]
