"""The model hub: its cache folder, its errors, and hashes of large model files."""

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
    """A model could not be fetched completely."""


class HubUnreachable(ModelNotFetched):
    """The hub did not answer; other models cannot be fetched either."""


def hub_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder, by the same rules as the hub's client."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environ.get(name):
            return Path(environ[name]).expanduser().absolute()
    general = environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = environ.get("HF_HOME") or f"{general}/huggingface"
    return Path(home).expanduser().absolute() / "hub"


def hub_name(environ: Mapping[str, str] = os.environ) -> str:
    """Return the hub's name for messages."""
    endpoint = environ.get("HF_ENDPOINT", "").rstrip("/")
    return f"the model hub at {endpoint}" if endpoint else "the Hugging Face model hub"


def is_hub_unreachable(error: Exception) -> bool:
    """Return True if the hub did not answer."""
    import httpx
    from huggingface_hub.errors import OfflineModeIsEnabled

    has_answer = getattr(error, "response", None) is not None
    return isinstance(error, OfflineModeIsEnabled) or (isinstance(error, httpx.HTTPError) and not has_answer)


def describe_hub_error(error: Exception) -> str:
    """Return the reason in words, without the hub's own message, which may contain a URL with a token."""
    import httpx
    from huggingface_hub.errors import OfflineModeIsEnabled

    response = getattr(error, "response", None)
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set"
    if response is not None:
        return f"HTTP status {response.status_code}"
    if isinstance(error, httpx.HTTPError):
        return f"cannot be reached: {type(error).__name__}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


# Integrity and identity of a model file, from a few mebibytes even for large weights.


# Smaller files are hashed completely; of larger weights, both ends and samples of each tensor.
_BIG_BYTES = 16 * 1024 * 1024
_EDGE_BYTES = 1024 * 1024
# A safetensors file begins with the length of its header, which the format limits to 100 MB.
_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100 * 1024 * 1024
_SAMPLES_PER_TENSOR = 16
_SAMPLE_BYTES = 1024

Span = tuple[int, int]


@functools.lru_cache(maxsize=256)
def hash_model_file(path: Path, size: int, mtime_ns: int) -> str:
    """Return a hash of the file; of large weights, of samples of every tensor. `ValueError` if truncated.

    Cached by size and modification time.
    """
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as stream:
        tensors = _tensors(stream, size) if path.suffix == ".safetensors" else []
        if path.suffix == ".json":
            json.loads(stream.read())
        for start, end in _sample_spans(path.suffix, tensors, size):
            stream.seek(start)
            digest.update(stream.read(end - start))
    return digest.hexdigest()


def _sample_spans(suffix: str, tensors: Iterable[Span], size: int) -> Iterator[Span]:
    """Yield byte ranges to hash: fine-tuning may change only some tensors, so each is sampled.

    A torch archive (.bin) ends with a checksum of each tensor.
    """
    if size <= _BIG_BYTES or suffix not in (".safetensors", ".bin"):
        yield 0, size
        return
    yield 0, _EDGE_BYTES
    for start, end in tensors:
        step = max(_SAMPLE_BYTES, (end - start) // _SAMPLES_PER_TENSOR)
        yield from ((at, min(at + _SAMPLE_BYTES, end)) for at in range(start, end, step))
    yield size - _EDGE_BYTES, size


def _tensors(stream: BinaryIO, size: int) -> list[Span]:
    """Return the byte range of each tensor from the header; `ValueError` if the file size does not match."""
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
    expected = max((end for _, end in tensors), default=begin)
    if size != expected:
        raise ValueError(f"it has {size} of {expected} bytes")
    return tensors
