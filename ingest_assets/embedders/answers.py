"""An endpoint's answer, read with distrust: a vector for each text, or words for what came instead."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest_assets.embedders.endpoint_errors import EndpointAnswerUnusable

_LITTLE = np.dtype("<f4")


@dataclass(frozen=True, eq=False)
class Answer:
    """`vectors` has an entry per text, words where there is no vector; `tokens` is 0 when it was not told.

    Nothing of a miscounted answer is believed: a server that leaves a text out may number the rest anew.
    """

    vectors: list[np.ndarray | str]
    tokens: int
    is_miscounted: bool = False


def read_answer(body: bytes, texts: int, dim: int) -> Answer:
    """What a body says of so many texts; `EndpointAnswerUnusable` when it is no answer at all."""
    content = _parsed(body)
    items = content.get("data")
    if not isinstance(items, list):
        raise EndpointAnswerUnusable(f"an object without a list `data` (it has {_names(content)})")
    places = _places(items, texts)
    if places is None:
        words = f"the answer holds {len(items)} vectors for {texts} texts"
        return Answer([words] * texts, _tokens(content), is_miscounted=True)
    vectors: list[np.ndarray | str] = ["the answer holds nothing for this text"] * texts
    for place, item in zip(places, items, strict=True):
        vectors[place] = _vector(item, dim)
    return Answer(vectors, _tokens(content))


def _parsed(body: bytes) -> dict[str, Any]:
    if not body.strip():
        raise EndpointAnswerUnusable("nothing")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        kind = "HTML" if body.lstrip()[:1] == b"<" else "something that is no JSON"
        raise EndpointAnswerUnusable(kind) from None
    if not isinstance(content, dict):
        raise EndpointAnswerUnusable(f"JSON that is no object but {type(content).__name__}")
    return content


def _names(content: dict[str, Any]) -> str:
    return ", ".join(sorted(map(repr, content)))[:100] or "nothing"


def _places(items: list[Any], texts: int) -> list[int] | None:
    """Which text each item is for; None when that cannot be known."""
    indices = [item.get("index") if isinstance(item, dict) else None for item in items]
    if all(index is None for index in indices):
        return list(range(texts)) if len(items) == texts else None
    numbers = [index for index in indices if type(index) is int and 0 <= index < texts]
    if len(set(numbers)) != len(items):
        return None
    # A short list is believed where its numbers have gaps: a server that numbers anew leaves none.
    is_known = len(items) == texts or set(numbers) != set(range(len(items)))
    return numbers if is_known else None


def _vector(item: Any, dim: int) -> np.ndarray | str:
    given = item.get("embedding") if isinstance(item, dict) else None
    vector = _from_base64(given) if isinstance(given, str) else _from_list(given)
    if isinstance(vector, str):
        return vector
    if len(vector) != dim:
        return WrongLength(len(vector), dim)
    if not np.isfinite(vector).all():
        return "the vector holds numbers that are not finite"
    return vector


class WrongLength(str):
    """Words for a vector of another length, with the length."""

    __slots__ = ("length",)
    length: int

    def __new__(cls, length: int, dim: int) -> "WrongLength":
        words = super().__new__(cls, f"the vector has {length} numbers instead of {dim}")
        words.length = length
        return words


def _from_base64(given: str) -> np.ndarray | str:
    try:
        content = base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        return "the vector is text that is no base64"
    if len(content) % _LITTLE.itemsize:
        return "the vector is base64 of half a number"
    return np.frombuffer(content, dtype=_LITTLE)


def _from_list(given: Any) -> np.ndarray | str:
    if not isinstance(given, list):
        return f"the vector is {'null' if given is None else type(given).__name__}"
    if not set(map(type, given)) <= {int, float}:  # a bool is an int to Python, and no number here
        return "the vector holds something that is no number"
    try:
        with np.errstate(over="ignore"):
            return np.asarray(given, dtype=np.float64).astype(_LITTLE)
    except OverflowError:
        return "the vector holds numbers that are not finite"


def _tokens(content: dict[str, Any]) -> int:
    usage = content.get("usage")
    told = [usage.get(name) for name in ("prompt_tokens", "total_tokens")] if isinstance(usage, dict) else []
    return next((number for number in told if type(number) is int and 0 <= number < 2**40), 0)
