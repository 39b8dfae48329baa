"""For those who run: tables that cannot be read are put aside, so that a run makes them anew."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ingest_assets.defs.home import Home
from ingest_assets.model.errors import IngestError, TableDamaged
from ingest_assets.storage.damage import put_aside

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
    """For a step that holds no lock."""
    try:
        yield
    except TableDamaged as damaged:
        raise found_damaged(home, damaged) from damaged


def found_damaged(home: Home, damaged: TableDamaged) -> IngestError:
    """The end of a step that found a table damaged while it ran; the next run makes it anew."""
    kept = put_aside(home.layout, damaged.path)
    if kept is None:
        return damaged
    return IngestError(
        f"{damaged.path} was damaged and is put aside as {kept}; run the batch again to make it anew."
    )
