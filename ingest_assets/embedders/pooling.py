"""How the vectors of a text's tokens become one, as sentence-transformers does it."""

from collections.abc import Callable
from typing import Any


def pool(hidden: Any, mask: Any, modes: tuple[str, ...]) -> Any:
    """Torch tensors (texts, tokens, width) and (texts, tokens), padded on the right; modes are joined."""
    import torch

    return torch.cat([_MODES[mode](hidden, mask) for mode in modes], dim=-1)


def _cls(hidden: Any, mask: Any) -> Any:
    return hidden[:, 0]


def _max(hidden: Any, mask: Any) -> Any:
    return hidden.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).max(dim=1).values


def _sums(hidden: Any, mask: Any) -> tuple[Any, Any]:
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1), weights.sum(dim=1).clamp(min=1e-9)


def _mean(hidden: Any, mask: Any) -> Any:
    total, number = _sums(hidden, mask)
    return total / number


def _mean_sqrt_length(hidden: Any, mask: Any) -> Any:
    total, number = _sums(hidden, mask)
    return total / number.sqrt()


def _weighted_mean(hidden: Any, mask: Any) -> Any:
    """Later tokens count for more: the first once, the second twice, and so on."""
    total, number = _sums(hidden, mask * mask.cumsum(dim=1))
    return total / number


def _last(hidden: Any, mask: Any) -> Any:
    import torch

    last = mask.sum(dim=1) - 1
    place = last.view(-1, 1, 1).expand(-1, 1, hidden.shape[-1])
    return torch.gather(hidden, 1, place).squeeze(1)


_MODES: dict[str, Callable[[Any, Any], Any]] = {
    "cls": _cls,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_length": _mean_sqrt_length,
    "weighted_mean": _weighted_mean,
    "last": _last,
}
