"""The one door for writes: a file is there whole, or it is as it was."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a scratch path in the same folder; when the block ends well, it becomes `path` in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield scratch
        _flush(scratch)
        scratch.replace(path)
        _flush(path.parent)
    finally:
        scratch.unlink(missing_ok=True)


def sweep_scratch(path: Path) -> int:
    """Remove scratch files that a killed writer of `path` left behind; call it under that path's lock."""
    leftovers = list(path.parent.glob(f".{path.name}.*.tmp"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
