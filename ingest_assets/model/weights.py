"""Is a model's file whole, and which one is it? Answered from a few mebibytes, however large the file."""

import functools
import hashlib
import json
import os
from pathlib import Path
from typing import BinaryIO

_BIG_BYTES = 16 * 1024 * 1024
_EDGE_BYTES = 1024 * 1024
_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100 * 1024 * 1024


@functools.lru_cache(maxsize=256)
def hash_whole(path: Path, size: int, mtime_ns: int) -> str:
    """Of big weights the size and both ends. Raises `ValueError` for a file that is cut short.

    Remembered for a file of this size and time: one that changed is read again.
    """
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as stream:
        if path.suffix == ".safetensors":
            _check_weights(stream, size)
        elif path.suffix == ".json":
            json.loads(stream.read())
        stream.seek(0)
        digest.update(stream.read(_BIG_BYTES if size <= _BIG_BYTES else _EDGE_BYTES))
        if size > _BIG_BYTES:
            stream.seek(-_EDGE_BYTES, os.SEEK_END)
            digest.update(stream.read())
    return digest.hexdigest()


def _check_weights(stream: BinaryIO, size: int) -> None:
    """The header says where each tensor ends, and so how long the file must be."""
    length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    if not 0 < length <= min(_MAX_HEADER_BYTES, size):
        raise ValueError("its header is damaged")
    try:
        header = json.loads(stream.read(length))
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        wanted = _LENGTH_BYTES + length + max(ends, default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise ValueError("its header is damaged") from None
    if size != wanted:
        raise ValueError(f"it has {size} of {wanted} bytes")
