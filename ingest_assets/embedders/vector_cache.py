"""Vectors that were made before, by model and text: repeated text and changed documents cost what is new."""

import functools
import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from ingest_assets.embedders.vector_file import FAULTS, VectorFile, is_damage
from ingest_assets.model.identity import UNIT_SEPARATOR, sha256_text

_log = logging.getLogger(__name__)
_FLOAT = np.dtype("<f4")
_CHECK_BYTES = 16
_WAIT_SECONDS = 5.0  # for another writer, who needs milliseconds
_USES_AT_ONCE = 4096
_BYTES_AT_ONCE = 8 * 1024 * 1024
_opening = threading.Lock()

T = TypeVar("T")
CACHE_FILE = "vectors.sqlite"

Row = tuple[bytes, bytes]


def open_cache(path: Path, max_bytes: int) -> "VectorCache":
    """The process's one cache on that file; threads share it."""
    with _opening:
        return _open(path, max_bytes)


@functools.cache
def _open(path: Path, max_bytes: int) -> "VectorCache":
    return VectorCache(path, max_bytes)


class VectorCache:
    """Vectors by model and text. Shared by threads and processes; bounded; a damaged entry or file is as if
    it were not there. One that is deleted while it is open is made anew.

    What comes back is bit for bit what was put. Nothing here fails an item: a disk that is full or not to be
    written is told once, and the vectors are made again. Each process opens its own, after a fork.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._file: VectorFile | None = None
        self._used: dict[bytes, None] = {}
        self._has_warned = False

    def get(self, space: str, texts: Sequence[str]) -> list[np.ndarray | None]:
        """The vector of each text, or None. Read-only arrays."""
        keys = [_key(space, text) for text in texts]
        with self._lock:
            nothing: dict[bytes, object] = {}
            stored = self._tried(lambda file: file.read(list(dict.fromkeys(keys))), nothing)
            found = {key: _vector(key, content) for key, content in stored.items()}
            damaged = [key for key, vector in found.items() if vector is None]
            if damaged:
                self._tried(lambda file: file.remove(damaged), None)
            self._note([key for key in keys if found.get(key) is not None])
        return [found.get(key) for key in keys]

    def put(self, space: str, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Keep one row of `vectors` per text, in place of what was kept for it."""
        content = np.ascontiguousarray(vectors, dtype=_FLOAT)
        rows = {_key(space, text): vector for text, vector in zip(texts, content, strict=True)}
        with self._lock:
            contents = ((key, _content(key, vector)) for key, vector in rows.items())
            for group in _groups(contents, min(_BYTES_AT_ONCE, self._max_bytes // 4)):
                self._store(group)

    def close(self) -> None:
        """Write down what was used last; may be called twice, and a later use opens again."""
        with self._lock:
            if self._used:
                self._store([])
            if self._file is not None:
                self._file.close()
                self._file = None

    def _note(self, keys: Sequence[bytes]) -> None:
        """Uses are written with the next vectors, or when there are many: reading stays reading."""
        for key in keys:
            self._used.pop(key, None)
            self._used[key] = None
        if len(self._used) >= _USES_AT_ONCE:
            self._store([])

    def _store(self, rows: Sequence[Row]) -> None:
        used = list(self._used)
        self._used.clear()
        self._tried(lambda file: file.write(rows, used), None)

    def _tried(self, act: Callable[[VectorFile], T], otherwise: T) -> T:
        """Do it; a damaged file is put aside, and an empty one takes its place."""
        try:
            return act(self._opened())
        except FAULTS as error:
            self._warn(error)
            if is_damage(error):
                self._begin_again()
        return otherwise

    def _opened(self) -> VectorFile:
        """The file that stands at the path now, which may have been deleted or exchanged meanwhile."""
        if self._file is not None and not self._file.is_in_place():
            gone, self._file = self._file, None
            gone.close()
        if self._file is None:
            self._file = VectorFile(self._path, self._max_bytes, _WAIT_SECONDS)
        return self._file

    def _begin_again(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.put_aside()
        except OSError as error:
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%s: the vector cache cannot be used as it is (%s); vectors are made again where needed.",
                self._path,
                error,
            )


def _key(space: str, text: str) -> bytes:
    return bytes.fromhex(sha256_text(f"{space}{UNIT_SEPARATOR}{sha256_text(text)}"))


def _content(key: bytes, vector: np.ndarray) -> bytes:
    numbers = vector.tobytes()
    return _check(key, numbers) + numbers


def _vector(key: bytes, content: object) -> np.ndarray | None:
    if not isinstance(content, bytes) or content[:_CHECK_BYTES] != _check(key, content[_CHECK_BYTES:]):
        return None
    return np.frombuffer(content, dtype=_FLOAT, offset=_CHECK_BYTES)


def _check(key: bytes, numbers: bytes) -> bytes:
    """Of the key too: a vector that damage put under another text is not that text's."""
    return hashlib.blake2b(numbers, digest_size=_CHECK_BYTES, key=key).digest()


def _groups(rows: Iterator[Row], most_bytes: int) -> Iterator[list[Row]]:
    """As many rows as one transaction should write."""
    group: list[Row] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row[1])
        if size >= most_bytes:
            yield group
            group, size = [], 0
    if group:
        yield group
