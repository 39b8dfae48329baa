"""Fetched bytes by their hash: each content once, whole or not at all, and broken downloads kept to go on.

A blob is trusted by its name and size: it got that name after its last byte was hashed and flushed, and
whoever reads a document checks the hash again.
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

CHECKPOINT_BYTES = 8 * 1024 * 1024  # what a broken download costs at most, for one flush of the disk
_BLOCK = 1024 * 1024


class ContentStore:
    """The blobs of a home. Safe to use from many threads and processes at once."""

    def __init__(self, layout: Layout, checkpoint_bytes: int = CHECKPOINT_BYTES) -> None:
        self._layout = layout
        self._checkpoint_bytes = checkpoint_bytes

    def find(self, content_hash: str) -> Path | None:
        """Where these bytes rest, if they do."""
        path = self._layout.blob(content_hash)
        return path if path.is_file() else None

    @contextlib.contextmanager
    def download(self, key: str) -> Iterator["PartialFile"]:
        """The partial file of `key`, with what an earlier download left. It never waits: whoever comes
        second while the first is at it gets a file of its own, which nobody continues."""
        partial = self._take(key) or self._alone(key)
        try:
            yield partial
        finally:
            partial.close()

    def sweep(self, before_epoch_s: float) -> int:
        """Remove what broken downloads left, if nobody is writing it or touched it since; says how many."""
        leftovers = [p for p in self._layout.blobs.rglob(".*.tmp") if p.stat().st_mtime < before_epoch_s]
        for path in leftovers:
            path.unlink(missing_ok=True)
        removed = len(leftovers)
        for path in sorted(self._layout.partials.glob("*.part")):
            stream = _locked(path, create=False)
            if stream is None:
                continue
            with stream:
                if os.fstat(stream.fileno()).st_mtime < before_epoch_s:
                    path.unlink()
                    path.with_suffix(".json").unlink(missing_ok=True)
                    removed += 1
        return removed

    def unused(self, used: Set[str], before_epoch_s: float) -> list[Path]:
        """Blobs that nobody uses and nobody got lately: what has just come may not be recorded yet."""
        found = (self._layout.blobs / "sha256").glob("??/*")
        blobs = (path for path in found if not path.name.startswith("."))
        return sorted(p for p in blobs if p.name not in used and p.stat().st_mtime < before_epoch_s)

    def _take(self, key: str) -> "PartialFile | None":
        path = self._layout.partial(key)
        stream = _locked(path, create=True)
        if stream is None:
            return None
        note = self._layout.partial_note(key)
        return PartialFile(self._layout, path, stream, note, self._checkpoint_bytes)

    def _alone(self, key: str) -> "PartialFile":
        path = self._layout.partial(f"{key} {uuid.uuid4().hex}")
        stream = path.open("x+b")
        fcntl.flock(stream, fcntl.LOCK_EX)
        return PartialFile(self._layout, path, stream, None, self._checkpoint_bytes)


def _locked(path: Path, *, create: bool) -> BinaryIO | None:
    """The file, open and ours alone; None while somebody else has it.

    Between opening and locking, the owner before us may have made it a blob: then it is not ours to write.
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
    """Bytes on their way in. Every few mebibytes they are flushed and the note beside says how many are
    safe, so that neither a killed process nor a power cut leaves bytes that are continued wrongly."""

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
        """Bytes here so far."""
        return self._size_bytes

    @property
    def note(self) -> Mapping[str, str]:
        """What was given to `restart`, by this download or by the one it goes on with."""
        return dict(self._note or {})

    def restart(self, note: Mapping[str, str] | None) -> None:
        """Begin at zero; without a note nothing is kept when the download breaks off."""
        self._forget()
        self._stream.seek(0)
        self._stream.truncate()
        self._digest, self._size_bytes, self._safe_bytes = hashlib.sha256(), 0, 0
        self._note = dict(note) if note is not None and self._note_path is not None else None

    def write(self, content: bytes) -> None:
        """Add bytes at the end."""
        self._stream.write(content)
        self._digest.update(content)
        self._size_bytes += len(content)
        if self._size_bytes - self._safe_bytes >= self._checkpoint_bytes:
            self._checkpoint()

    def finish(self) -> Blob:
        """Make the bytes a blob, in one step; identical bytes that rest there already are left alone."""
        self._stream.flush()
        content_hash = self._digest.hexdigest()
        target = self._layout.blob(content_hash)
        is_new = not (target.is_file() and target.stat().st_size == self._size_bytes)
        self._forget()
        if is_new:
            with replacing(target) as scratch:
                self._path.rename(scratch)
        else:
            self._path.unlink()
        self._is_finished = True  # from here on, a file of that name is somebody else's
        return Blob(target, content_hash, self._size_bytes, is_new)

    def close(self) -> None:
        """Keep what may be continued, remove the rest, and let go of the file."""
        may_continue = self._note is not None and self._size_bytes > 0
        try:
            if may_continue and not self._is_finished:
                with contextlib.suppress(OSError):  # the disk is full: the note before is still true
                    self._checkpoint()
            elif not self._is_finished:
                self._path.unlink(missing_ok=True)
                self._forget()
        finally:
            with contextlib.suppress(OSError):  # closing flushes again what did not fit
                self._stream.close()

    def _recover(self) -> None:
        """Go on from what the note says is safe, if the bytes are still those."""
        kept = _read_note(self._note_path)
        if kept is None:
            self.restart(None)
            return
        safe_bytes, sha256, note = kept
        left = safe_bytes
        while left and (block := self._stream.read(min(_BLOCK, left))):
            self._digest.update(block)
            left -= len(block)
        if left or self._digest.hexdigest() != sha256:
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

    def _forget(self) -> None:
        if self._note_path is not None:
            self._note_path.unlink(missing_ok=True)


def _read_note(path: Path | None) -> tuple[int, str, dict[str, str]] | None:
    """A note that was damaged is no note."""
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8")) if path is not None else None
        safe_bytes, sha256, note = record["safe_bytes"], record["sha256"], record["note"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_sound = isinstance(safe_bytes, int) and safe_bytes > 0 and isinstance(note, dict)
    return (safe_bytes, str(sha256), note) if is_sound else None
