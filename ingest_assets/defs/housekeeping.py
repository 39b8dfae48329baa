"""What accumulates in an unattended home and nobody needs: removed once a night."""

import time
from dataclasses import dataclass

from ingest_assets.defs.home import Home
from ingest_assets.defs.sets import families, remove_abandoned
from ingest_assets.storage.blobs import ContentStore

_DAY_S = 86_400.0
_PARTIALS_KEPT_S = 7 * _DAY_S
_BLOBS_KEPT_S = _DAY_S
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
