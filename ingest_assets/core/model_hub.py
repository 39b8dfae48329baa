"""Model files of the hub's cache: their names, revisions and weights."""

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from ingest_assets.core.errors import IngestError

ANSWER_SECONDS = 10.0


class ModelNotFetched(IngestError):
    """A model could not be fetched whole."""


class HubUnreachable(ModelNotFetched):
    """Nor would any other model of the hub be fetched now."""


def hub_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """As the hub's client finds it."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environ.get(name):
            return Path(environ[name]).expanduser().absolute()
    general = environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = environ.get("HF_HOME") or f"{general}/huggingface"
    return Path(home).expanduser().absolute() / "hub"


def hub_name(environ: Mapping[str, str] = os.environ) -> str:
    """Where models come from."""
    given = environ.get("HF_ENDPOINT", "").rstrip("/")
    return f"the model hub at {given}" if given else "the Hugging Face model hub"


def is_unreachable(error: Exception) -> bool:
    """True when the hub gave no answer at all."""
    import httpx
    from huggingface_hub.errors import OfflineModeIsEnabled

    has_answer = getattr(error, "response", None) is not None
    return isinstance(error, OfflineModeIsEnabled) or (isinstance(error, httpx.HTTPError) and not has_answer)


def reason_of(error: Exception) -> str:
    """Why, in words; never the hub's own, which may hold a token's address."""
    import httpx
    from huggingface_hub.errors import OfflineModeIsEnabled

    response = getattr(error, "response", None)
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set, and forbids it"
    if response is not None:
        return f"it answered with status {response.status_code}"
    if isinstance(error, httpx.HTTPError):
        return f"it cannot be reached ({type(error).__name__})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


# Is a model's file whole, and which one is it? Answered from a few mebibytes, however large the weights.


# Files up to this size are hashed whole; of larger weights their edges, and some places of each tensor.
_BIG_BYTES = 16 * 1024 * 1024
_EDGE_BYTES = 1024 * 1024
# A safetensors file begins with the length of its header, which the format itself limits to 100 MB.
_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100 * 1024 * 1024
_LOOKS = 16
_LOOK_BYTES = 1024

Span = tuple[int, int]


@functools.lru_cache(maxsize=256)
def hash_whole(path: Path, size: int, mtime_ns: int) -> str:
    """Of big weights a part of every tensor. Raises `ValueError` for a file that is cut short.

    Remembered for a file of this size and time: one that changed is read again.
    """
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as stream:
        tensors = _tensors(stream, size) if path.suffix == ".safetensors" else []
        if path.suffix == ".json":
            json.loads(stream.read())
        for start, end in _looks(path.suffix, tensors, size):
            stream.seek(start)
            digest.update(stream.read(end - start))
    return digest.hexdigest()


def _looks(suffix: str, tensors: Iterable[Span], size: int) -> Iterator[Span]:
    """Where to look. Training may leave most tensors alone, the first and the last of a file as well.

    What torch packs (.bin) ends with a checksum of each tensor.
    """
    if size <= _BIG_BYTES or suffix not in (".safetensors", ".bin"):
        yield 0, size
        return
    yield 0, _EDGE_BYTES
    for start, end in tensors:
        step = max(_LOOK_BYTES, (end - start) // _LOOKS)
        yield from ((at, min(at + _LOOK_BYTES, end)) for at in range(start, end, step))
    yield size - _EDGE_BYTES, size


def _tensors(stream: BinaryIO, size: int) -> list[Span]:
    """Where each tensor lies, as the header says, which so knows how long the file must be."""
    length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    if not 0 < length <= min(_MAX_HEADER_BYTES, size):
        raise ValueError("its header is damaged")
    begin = _LENGTH_BYTES + length
    try:
        header = json.loads(stream.read(length))
        offsets = [tensor["data_offsets"] for name, tensor in header.items() if name != "__metadata__"]
        tensors = sorted((begin + int(start), begin + int(end)) for start, end in offsets)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("its header is damaged") from None
    if any(not begin <= start <= end for start, end in tensors):
        raise ValueError("its header is damaged")
    wanted = max((end for _, end in tensors), default=begin)
    if size != wanted:
        raise ValueError(f"it has {size} of {wanted} bytes")
    return tensors
