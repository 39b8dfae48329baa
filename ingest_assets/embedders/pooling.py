"""How the vectors of a text's tokens become one, as sentence-transformers does it."""

from collections.abc import Callable

import numpy as np


def pool(hidden: np.ndarray, modes: tuple[str, ...]) -> np.ndarray:
    """One text's vector from its own tokens (tokens, width), padding left out; several modes are joined.

    A text at a time, so that no neighbour and no padding can change a bit.
    """
    return np.concatenate([_MODES[mode](hidden) for mode in modes])


def pool_batch(hidden: np.ndarray, lengths: list[int], modes: tuple[str, ...], dim: int) -> list[np.ndarray]:
    """The same for texts padded on the right, each cut to the leading numbers that are kept."""
    return [pool(rows[:length], modes)[:dim] for rows, length in zip(hidden, lengths, strict=True)]


def _cls(hidden: np.ndarray) -> np.ndarray:
    return hidden[0]


def _max(hidden: np.ndarray) -> np.ndarray:
    return np.asarray(hidden.max(axis=0))


def _mean(hidden: np.ndarray) -> np.ndarray:
    return hidden.sum(axis=0) / np.float32(len(hidden))


def _mean_sqrt_length(hidden: np.ndarray) -> np.ndarray:
    return hidden.sum(axis=0) / np.sqrt(np.float32(len(hidden)))


def _weighted_mean(hidden: np.ndarray) -> np.ndarray:
    """Later tokens count for more: the first once, the second twice, and so on."""
    weights = np.arange(1, len(hidden) + 1, dtype=np.float32)
    return np.asarray((hidden * weights[:, None]).sum(axis=0) / weights.sum())


def _last(hidden: np.ndarray) -> np.ndarray:
    return hidden[-1]


_MODES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "cls": _cls,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_length": _mean_sqrt_length,
    "weighted_mean": _weighted_mean,
    "last": _last,
}
