"""Fetched bytes, stored once per hash, and partial files from which an interrupted download continues.

A blob's name and size are trusted: it is renamed only after its last byte is hashed and flushed, and readers
of documents check the hash again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, BinaryIO

from ingest_assets.core.items import Blob
from ingest_assets.core.layout import Layout
from ingest_assets.storage.atomic import replacing

CHECKPOINT_BYTES = 8 * 1024 * 1024  # an interrupted download loses at most this; each checkpoint is a flush
_BLOCK = 1024 * 1024


class ContentStore:
    """The blobs of a home. Safe to use from several threads and processes."""

    def __init__(self, layout: Layout, checkpoint_bytes: int = CHECKPOINT_BYTES) -> None:
        self._layout = layout
        self._checkpoint_bytes = checkpoint_bytes

    def find(self, content_hash: str) -> Path | None:
        """Return the path of the blob, or None."""
        path = self._layout.blob(content_hash)
        return path if path.is_file() else None

    @contextlib.contextmanager
    def download(self, key: str) -> Iterator["PartialFile"]:
        """Open the partial file of `key` and continue an earlier download. Never waits: if another download
        of `key` is active, open a separate file that is not continued later."""
        partial = self._open_shared(key) or self._open_separate(key)
        try:
            yield partial
        finally:
            partial.close()

    def sweep(self, before_epoch_s: float) -> int:
        """Remove unlocked files of interrupted downloads older than `before_epoch_s`; return their number."""
        leftovers = [p for p in self._layout.blobs.rglob(".*.tmp") if p.stat().st_mtime < before_epoch_s]
        for path in leftovers:
            path.unlink(missing_ok=True)
        removed = len(leftovers)
        for path in sorted(self._layout.partials.glob("*.part")):
            stream = _open_locked(path, create=False)
            if stream is None:
                continue
            with stream:
                if os.fstat(stream.fileno()).st_mtime < before_epoch_s:
                    path.unlink()
                    path.with_suffix(".json").unlink(missing_ok=True)
                    removed += 1
        return removed

    def unused(self, used: Set[str], before_epoch_s: float) -> list[Path]:
        """Return blobs that are neither used nor recent: a recent one may not be recorded yet."""
        files = (self._layout.blobs / "sha256").glob("??/*")
        blobs = (path for path in files if not path.name.startswith("."))
        return sorted(p for p in blobs if p.name not in used and p.stat().st_mtime < before_epoch_s)

    def _open_shared(self, key: str) -> "PartialFile | None":
        path = self._layout.partial(key)
        stream = _open_locked(path, create=True)
        if stream is None:
            return None
        note = self._layout.partial_note(key)
        return PartialFile(self._layout, path, stream, note, self._checkpoint_bytes)

    def _open_separate(self, key: str) -> "PartialFile":
        path = self._layout.partial(f"{key} {uuid.uuid4().hex}")
        stream = path.open("x+b")
        fcntl.flock(stream, fcntl.LOCK_EX)
        return PartialFile(self._layout, path, stream, None, self._checkpoint_bytes)


def _open_locked(path: Path, *, create: bool) -> BinaryIO | None:
    """Open the file exclusively; None if another process holds it.

    Between opening and locking, the previous owner can rename it to a blob; then open the path again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644)
        except FileNotFoundError:
            return None
        stream = os.fdopen(descriptor, "r+b")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                return stream
        stream.close()


class PartialFile:
    """A download in progress. At each checkpoint the bytes are flushed and a note records their number and
    hash, so that a download never continues from bytes that a crash or power failure damaged."""

    def __init__(
        self, layout: Layout, path: Path, stream: BinaryIO, note_path: Path | None, checkpoint_bytes: int
    ) -> None:
        self._layout = layout
        self._path = path
        self._stream = stream
        self._note_path = note_path
        self._checkpoint_bytes = checkpoint_bytes
        self._digest = hashlib.sha256()
        self._size_bytes = 0
        self._safe_bytes = 0
        self._note: dict[str, str] | None = None
        self._is_finished = False
        self._recover()

    @property
    def size_bytes(self) -> int:
        """Bytes written so far."""
        return self._size_bytes

    @property
    def note(self) -> Mapping[str, str]:
        """The note passed to `restart` by this download, or by the one it continues."""
        return dict(self._note or {})

    def restart(self, note: Mapping[str, str] | None) -> None:
        """Discard all bytes. Without a note, an interrupted download is not kept."""
        self._remove_note()
        self._stream.seek(0)
        self._stream.truncate()
        self._digest, self._size_bytes, self._safe_bytes = hashlib.sha256(), 0, 0
        self._note = dict(note) if note is not None and self._note_path is not None else None

    def write(self, content: bytes) -> None:
        """Append bytes."""
        self._stream.write(content)
        self._digest.update(content)
        self._size_bytes += len(content)
        if self._size_bytes - self._safe_bytes >= self._checkpoint_bytes:
            self._checkpoint()

    def finish(self) -> Blob:
        """Turn the file into a blob atomically; an identical stored blob is kept."""
        self._stream.flush()
        content_hash = self._digest.hexdigest()
        target = self._layout.blob(content_hash)
        is_new = not (target.is_file() and target.stat().st_size == self._size_bytes)
        self._remove_note()
        if is_new:
            with replacing(target) as scratch:
                self._path.rename(scratch)
        else:
            self._path.unlink()
        self._is_finished = True  # from here on, a file of that name belongs to another download
        return Blob(target, content_hash, self._size_bytes, is_new)

    def close(self) -> None:
        """Close the file; keep it if it can be continued, otherwise remove it."""
        may_continue = self._note is not None and self._size_bytes > 0
        try:
            if may_continue and not self._is_finished:
                with contextlib.suppress(OSError):  # the disk is full: the previous note is still valid
                    self._checkpoint()
            elif not self._is_finished:
                self._path.unlink(missing_ok=True)
                self._remove_note()
        finally:
            with contextlib.suppress(OSError):  # on a full disk, closing flushes and fails again
                self._stream.close()

    def _recover(self) -> None:
        """Continue after the bytes that the note records, if they still have the recorded hash."""
        record = _read_note(self._note_path)
        if record is None:
            self.restart(None)
            return
        safe_bytes, sha256, note = record
        remaining = safe_bytes
        while remaining and (block := self._stream.read(min(_BLOCK, remaining))):
            self._digest.update(block)
            remaining -= len(block)
        if remaining or self._digest.hexdigest() != sha256:
            self.restart(None)
            return
        self._stream.truncate(safe_bytes)
        self._size_bytes = self._safe_bytes = safe_bytes
        self._note = note

    def _checkpoint(self) -> None:
        if self._note is None or self._note_path is None:
            return
        self._stream.flush()
        os.fsync(self._stream.fileno())
        record = {"safe_bytes": self._size_bytes, "sha256": self._digest.hexdigest(), "note": self._note}
        with replacing(self._note_path) as scratch:
            scratch.write_text(json.dumps(record), encoding="utf-8")
        self._safe_bytes = self._size_bytes

    def _remove_note(self) -> None:
        if self._note_path is not None:
            self._note_path.unlink(missing_ok=True)


def _read_note(path: Path | None) -> tuple[int, str, dict[str, str]] | None:
    """Return safe bytes, their hash and the note; None if it is missing or damaged."""
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8")) if path is not None else None
        safe_bytes, sha256, note = record["safe_bytes"], record["sha256"], record["note"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_valid = isinstance(safe_bytes, int) and safe_bytes > 0 and isinstance(note, dict)
    return (safe_bytes, str(sha256), note) if is_valid else None
