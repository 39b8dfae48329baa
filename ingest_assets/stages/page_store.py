"""Pages of long documents, between the worker that read them and the one that puts them together.

They rest beside the staged parts: a killed run finds them again, and a commit clears them away.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from ingest_assets.model.items import WorkItem
from ingest_assets.parsing.ranges import PageRange, ReadPages, together, unpacked
from ingest_assets.storage.atomic import replacing

_FOLDER = "pages"


class PageStore:
    """The pages of one item of a plan, as far as they have been read."""

    def __init__(self, item: WorkItem) -> None:
        self._folder = Path(item.output_paths[0]).parent / _FOLDER / item.fingerprint

    def path(self, pages: PageRange) -> Path:
        """Where a range rests."""
        return self._folder / f"{pages.first}-{pages.last}.pickle"

    def known(self) -> ReadPages:
        """All that is there; a damaged file counts as absent, and its pages are read again."""
        return together(self._ranges())

    def clear(self) -> None:
        """Forget them."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ranges(self) -> Iterator[ReadPages]:
        for path in sorted(self._folder.glob("*.pickle")):
            with contextlib.suppress(Exception):  # whatever a broken pickle raises
                yield unpacked(path.read_bytes())


def store_range(path: Path, pages: ReadPages) -> None:
    """Persist a range at once and whole."""
    with replacing(path) as scratch:
        scratch.write_bytes(pages.packed())
