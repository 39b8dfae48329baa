"""The one door for writes: a file is there whole, or it is as it was."""

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

from ingest_assets.storage.flushing import flush, flush_soon


@contextlib.contextmanager
def replacing(path: Path, *, waits: bool = True) -> Iterator[Path]:
    """Give a scratch path in the same folder; when the block ends well, it becomes `path` in one step.

    It is on the disk then, or soon after for a writer that does not wait.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield scratch
        if waits:
            flush(scratch)
        scratch.replace(path)
        if waits:
            flush(path.parent)
        else:
            flush_soon(path)
    finally:
        scratch.unlink(missing_ok=True)


def sweep_scratch(path: Path) -> int:
    """Remove scratch files that a killed writer of `path` left behind; call it under that path's lock."""
    leftovers = list(path.parent.glob(f".{path.name}.*.tmp"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)
