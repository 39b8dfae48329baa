"""SQLite files that stay open between two uses, and the statements that were compiled for them."""

import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.pool import QueuePool

MOST_KEPT = 6  # files: those of the last runs, and the index over all of them


class KeptFiles:
    """An engine with one open connection for each of the files that were used last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _KeptFile] = OrderedDict()
        self._process = os.getpid()

    def engine(self, url: str) -> Engine:
        """The engine of a file; a new one where the file was removed or replaced since."""
        with self._lock:
            self._leave_to_parent()
            kept = self._kept.get(url)
            if kept is None or not kept.is_same_file():
                self._let_go(url)
                kept = self._kept[url] = _KeptFile(url)
            self._kept.move_to_end(url)
            if len(self._kept) > MOST_KEPT:
                self._let_go(next(iter(self._kept)))
            return kept.engine

    def close(self) -> None:
        """Let go of all files; each is opened again when it is asked for."""
        with self._lock:
            self._leave_to_parent()
            for url in list(self._kept):
                self._let_go(url)

    def _let_go(self, url: str) -> None:
        kept = self._kept.pop(url, None)
        if kept is not None:
            kept.close()

    def _leave_to_parent(self) -> None:
        """Connections of SQLite do not survive a fork: a child opens its own and touches no other."""
        if self._process == os.getpid():
            return
        for kept in self._kept.values():
            kept.engine.dispose(close=False)
        self._kept.clear()
        self._process = os.getpid()


class _KeptFile:
    """One file, told from another of its name by where it lies on the disk."""

    def __init__(self, url: str) -> None:
        self._path = Path(make_url(url).database or "")
        self._place: tuple[int, int] | None = None
        self.engine = create_engine(
            url,
            poolclass=QueuePool,
            pool_size=1,
            max_overflow=-1,  # who asks while another asks gets a connection of his own, as with Dagster
            connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
        )
        event.listen(self.engine, "connect", _flush_with_merges_only)

    def is_same_file(self) -> bool:
        """False when a connection that is open would write into a file that nobody finds any more."""
        place = _place_of(self._path)
        if self._place is None:
            self._place = place
        return place == self._place

    def close(self) -> None:
        """In a thread of its own: a Ctrl-C while SQLite merges its log would be SQLAlchemy's, which prints it
        and goes on; here it is that of whoever waits."""
        closing = threading.Thread(target=self.engine.dispose, name="ingest-close")
        closing.start()
        closing.join()


def _place_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _flush_with_merges_only(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
