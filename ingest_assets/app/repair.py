"""Put damaged tables aside, and remove what accumulates."""

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
from ingest_assets.storage.parquet import put_aside

_log = logging.getLogger(__name__)
Found = TypeVar("Found")


def mended(home: Home, look: Callable[[], Found]) -> Found:
    """What a look at the tables finds without those that are damaged: all that they hold is derived.

    One that could not be put aside may have been replaced by a whole one meanwhile: it gets a second look.
    """
    looked_again: set[Path] = set()
    while True:
        try:
            return look()
        except TableDamaged as damaged:
            kept = put_aside(home.layout, damaged.path)
            if kept is None and damaged.path in looked_again:
                raise
            looked_again.add(damaged.path)
            if kept is not None:
                _log.warning("%s was damaged and is put aside as %s; it is made anew.", damaged.path, kept)


@contextmanager
def putting_damage_aside(home: Home) -> Iterator[None]:
    """For a step that holds no lock when it ends; it fails, and the next run makes the table anew."""
    try:
        yield
    except TableDamaged as damaged:
        kept = put_aside(home.layout, damaged.path)
        if kept is None:
            raise
        raise IngestError(
            f"{damaged.path} was damaged and is put aside as {kept}; run the batch again to make it anew."
        ) from damaged


# What accumulates in an unattended home and nobody needs: removed once a night.


_DAY_S = 86_400.0
# A download is continued where it broke off, also days later.
_PARTIALS_KEPT_S = 7 * _DAY_S
# What came today may not be in the ledger yet.
_BLOBS_KEPT_S = _DAY_S
# A set that another run is filling is touched with each batch.
_SETS_KEPT_S = _DAY_S


@dataclass(frozen=True, slots=True)
class Tidied:
    """What was removed."""

    partials: int
    blobs: int
    size_bytes: int
    sets: int = 0

    def as_line(self) -> str:
        """For a log."""
        sets = f", and {self.sets} abandoned sets of vectors" if self.sets else ""
        return (
            f"Removed {self.partials} broken downloads and {self.blobs} stored documents that nobody uses "
            f"({self.size_bytes / 1e6:.1f} MB){sets}."
        )


def tidy(home: Home, now: float | None = None) -> Tidied:
    """Remove broken downloads that nobody continued, stored bytes that no artifact has any more, and sets
    that were begun and given up."""
    now = time.time() if now is None else now
    store = ContentStore(home.layout)
    unused = store.unused(home.queue.hashes(), now - _BLOBS_KEPT_S)
    size_bytes = sum(path.stat().st_size for path in unused)
    for path in unused:
        path.unlink(missing_ok=True)
    partials = store.sweep(now - _PARTIALS_KEPT_S)
    sets = [gone for stage in families(home) for gone in remove_abandoned(home, stage, now - _SETS_KEPT_S)]
    return Tidied(partials, len(unused), size_bytes, len(sets))
