"""The log of attempts: append-only JSON lines, one per attempt, written by any number of processes."""

import fcntl
import json
import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

_log = logging.getLogger(__name__)

_BLOCK_BYTES = 64 * 1024  # some hundred rows, read from the end

RowStatus = Literal["done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One attempt. `error` is a `StageError` as plain values; a retried item has one row per attempt."""

    stage: str
    item_id: str
    status: RowStatus
    attempt_no: int
    run_id: str
    fingerprint: str
    cfg_hash: str
    finished_at: str
    outputs: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    error: dict[str, Any] | None = None

    def as_line(self) -> bytes:
        """Return the row as ASCII JSON, which no item id can break."""
        row = {name: getattr(self, name) for name in _NAMES if name != "error" or self.error is not None}
        return json.dumps(row, separators=(",", ":"), default=repr).encode("ascii") + b"\n"


_NAMES = tuple(column.name for column in fields(ManifestRow))


class Manifest:
    """Appends rows to a file, created for the first row. The last rows can be lost in a power failure."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._lock = threading.Lock()

    def append(self, row: ManifestRow) -> None:
        """Append a row under a file lock, so that rows of several processes never mix."""
        line = row.as_line()
        with self._lock:
            is_first = self._file is None
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            file = self._file
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                size = os.fstat(file).st_size if is_first else 0
                if size and os.pread(file, 1, size - 1) != b"\n":
                    line = b"\n" + line  # the last line is incomplete after a crash
                while line:
                    line = line[os.write(file, line) :]
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file; a later row opens it again."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None


def read_manifest(path: Path) -> Iterator[ManifestRow]:
    """Yield all complete rows in order. Incomplete lines and keys of later versions are skipped."""
    if not path.exists():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            row = _parsed(line)
            if row is not None:
                yield row
            elif line.strip():
                _log.warning("%s, line %d is incomplete and is skipped.", path, number)


def read_newest(path: Path) -> Iterator[ManifestRow]:
    """Yield all complete rows from the last to the first, reading the file only as far as needed."""
    if not path.exists():
        return
    with path.open("rb") as lines:
        end, rest = lines.seek(0, os.SEEK_END), b""
        while end > 0:
            start = max(0, end - _BLOCK_BYTES)
            lines.seek(start)
            rest, *complete = (lines.read(end - start) + rest).split(b"\n")
            yield from filter(None, map(_parsed, reversed(complete)))
            end = start
        yield from filter(None, [_parsed(rest)])


def _parsed(line: bytes) -> ManifestRow | None:
    try:
        values = {key: value for key, value in json.loads(line).items() if key in _NAMES}
        return ManifestRow(**{**values, "outputs": tuple(values.get("outputs", ()))})
    except (ValueError, TypeError, AttributeError):
        return None
