"""List the files of a watched folder, and the problems with the others."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ingest_assets.core.errors import ConfigError

# PostgreSQL cannot index longer texts; the limit is the same for SQLite, so that a ledger can be moved.
MAX_PATH_BYTES = 2000


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file in a folder; `path` is relative, in the file system's spelling."""

    path: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A file or folder that could not be read; with `is_folder`, everything below it is unknown."""

    path: str
    reason: str
    is_folder: bool = False


def require_folder(path: Path) -> Path:
    """Return the folder as an absolute path; raise `ConfigError` if it cannot be used."""
    try:
        folder = path.expanduser().resolve()
        if not _is_unicode(str(folder)):
            raise ConfigError(f"{_printable(str(path))}: name is not valid UTF-8; rename the folder.")
        if not folder.is_dir():
            fault = "is a file, not a folder" if folder.exists() else "does not exist"
            raise ConfigError(f"{path}: {fault}; give a folder with documents.")
        with os.scandir(folder):
            return folder
    except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError before Python 3.13
        raise ConfigError(f"{path}: cannot be read ({_why(error)}); check its permissions.") from None


@dataclass(frozen=True, slots=True)
class Exclusions:
    """What to skip: glob patterns of relative paths, and whole folders."""

    patterns: tuple[str, ...] = ()
    folders: frozenset[Path] = frozenset()

    def covers(self, entry: "os.DirEntry[str]", path: str) -> bool:
        # Office names the lock file of an open document "~$…".
        if entry.name.startswith((".", "~$")) or any(fnmatchcase(path, p) for p in self.patterns):
            return True
        # Creating a `Path` takes longer than all the rest, and there are many files and few folders.
        return not entry.is_file(follow_symlinks=False) and Path(entry.path) in self.folders


def walk(folder: Path, exclude: Exclusions) -> Iterator[SeenFile | Problem]:
    """Yield the files below a folder in a stable order; skip hidden files."""
    root = folder.resolve()
    yield from _walk(root, "", root, exclude)


def _walk(folder: Path, prefix: str, root: Path, exclude: Exclusions) -> Iterator[SeenFile | Problem]:
    try:
        with os.scandir(folder) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError as error:
        reason = f"folder cannot be read ({_why(error)}); check its permissions"
        yield Problem(_printable(prefix.rstrip("/")) or ".", reason, is_folder=True)
        return
    for entry in entries:
        path = prefix + entry.name
        if exclude.covers(entry, path):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), path + "/", root, exclude)
        elif (file := _entry(entry, path, root)) is not None:
            yield file


def _entry(entry: "os.DirEntry[str]", path: str, root: Path) -> SeenFile | Problem | None:
    """Return the file of a directory entry, or the problem with it; None for anything else, such as pipes."""
    try:
        if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(root):
            return Problem(
                _printable(path), "link points outside the folder; copy its target into the folder"
            )
        if not entry.is_file():
            return None
        if not _is_unicode(path):
            return Problem(_printable(path), "name is not valid UTF-8; rename the file")
        # A character has at most four bytes, so short paths need not be encoded.
        if len(path) > MAX_PATH_BYTES // 4 and len(os.fsencode(path)) > MAX_PATH_BYTES:
            reason = f"path is longer than {MAX_PATH_BYTES} bytes; shorten the names of its folders"
            return Problem(path, reason)
        status = entry.stat()
        return SeenFile(path, status.st_size, status.st_mtime_ns)
    except (OSError, RuntimeError) as error:
        return Problem(_printable(path), f"cannot be read ({_why(error)}); check the file")


def _is_unicode(name: str) -> bool:
    """False for names that are not UTF-8: Python decodes them to lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _why(error: OSError | RuntimeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "the link points to itself"
