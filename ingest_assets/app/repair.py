"""Quarantine damaged tables, and remove unused files."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ingest_assets.app.home import Home
from ingest_assets.app.model_switch import families, remove_abandoned
from ingest_assets.core.errors import IngestError, TableDamaged
from ingest_assets.storage.blobs import ContentStore
from ingest_assets.storage.parquet import quarantine_if_damaged

_log = logging.getLogger(__name__)
T = TypeVar("T")


def quarantine_damaged(home: Home, read: Callable[[], T]) -> T:
    """Return the result of `read`. Quarantine damaged tables and call it again: runs rebuild tables.

    A table that cannot be quarantined may have been replaced by an intact one, so it is read once more.
    """
    read_again: set[Path] = set()
    while True:
        try:
            return read()
        except TableDamaged as damaged:
            moved_to = quarantine_if_damaged(home.layout, damaged.path)
            if moved_to is None and damaged.path in read_again:
                raise
            read_again.add(damaged.path)
            if moved_to is not None:
                _log.warning("%s is damaged and was moved to %s. Runs rebuild it.", damaged.path, moved_to)


@contextmanager
def quarantining_damage(home: Home) -> Iterator[None]:
    """Quarantine a damaged table and fail; the next run rebuilds it. Locks must be released inside."""
    try:
        yield
    except TableDamaged as damaged:
        moved_to = quarantine_if_damaged(home.layout, damaged.path)
        if moved_to is None:
            raise
        raise IngestError(
            f"{damaged.path} is damaged and was moved to {moved_to}. Run `ingest all` again to rebuild it."
        ) from damaged


# Cleanup: remove unused files once a night.


_DAY_S = 86_400.0
# An interrupted download can be resumed for days.
_PARTIALS_KEPT_S = 7 * _DAY_S
# Recent files may not be in the ledger yet.
_BLOBS_KEPT_S = _DAY_S
# A set that another run is building is modified with each batch.
_SETS_KEPT_S = _DAY_S


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """The files that a cleanup removed."""

    partials: int
    blobs: int
    size_bytes: int
    sets: int = 0

    def as_line(self) -> str:
        """Return one line for a log."""
        sets = f", and {self.sets} abandoned model sets" if self.sets else ""
        return (
            f"Removed {self.partials} incomplete downloads and {self.blobs} unused stored documents "
            f"({self.size_bytes / 1e6:.1f} MB){sets}."
        )


def clean_up(home: Home, now: float | None = None) -> CleanupReport:
    """Remove old incomplete downloads, stored bytes that no artifact uses, and abandoned model sets."""
    now = time.time() if now is None else now
    store = ContentStore(home.layout)
    unused = store.unused(home.queue.hashes(), now - _BLOBS_KEPT_S)
    size_bytes = sum(path.stat().st_size for path in unused)
    for path in unused:
        path.unlink(missing_ok=True)
    partials = store.sweep(now - _PARTIALS_KEPT_S)
    sets = [name for stage in families(home) for name in remove_abandoned(home, stage, now - _SETS_KEPT_S)]
    return CleanupReport(partials, len(unused), size_bytes, len(sets))
