"""From the flags of a command to what it does, which needs libraries that take seconds to load."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ingest_assets.cli.interrupts import PRESSES


@contextlib.contextmanager
def libraries(home: Path | None = None) -> Iterator[None]:
    """Around the imports of a command on a home; a slip in its settings is answered before them."""
    _require_good_settings(home)
    with PRESSES.ending_at_once():
        yield


def _require_good_settings(home: Path | None) -> None:
    """Of a home that is there; one that is not is explained by who opens it."""
    from ingest_assets.config import home_folder, read_settings

    folder = (home or home_folder()).expanduser()
    if folder.is_dir():
        read_settings(folder.resolve())
