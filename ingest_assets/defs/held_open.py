"""Dagster's SQLite files, held open while a command runs.

Dagster opens and closes a file for every event, hundreds of times in a run. SQLite merges its log into the
file whenever the last connection closes, and flushes both; a connection that stays makes it do so now and
then. Between merges the last events outlive the end of every process, but perhaps not that of the machine:
tables and ledger do not depend on them, and a run without an end counts as failed.
"""

import contextlib
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

MOST_HELD = 6  # files: runs, schedules, the index of assets, and those of the last runs


@contextlib.contextmanager
def held_open(folder: Path, but: Path) -> Iterator[None]:
    """Within the block, SQLite files below a folder stay open once somebody has opened them.

    One is left alone: the ledger, whose every word must outlive the machine.
    """
    spares = _Spares(folder.resolve(), but.resolve())
    event.listen(Engine, "connect", spares.see)
    try:
        yield
    finally:
        event.remove(Engine, "connect", spares.see)
        spares.close()


class _Spares:
    """A connection of our own to each of the files that were opened last."""

    def __init__(self, folder: Path, but: Path) -> None:
        self._folder, self._but = f"{folder}/", str(but)
        self._lock = threading.Lock()
        self._held: OrderedDict[str, sqlite3.Connection] = OrderedDict()

    def see(self, connection: Any, record: Any) -> None:
        """Somebody opened a file."""
        path = _file_of(connection)
        if not path.startswith(self._folder) or path == self._but:
            return
        connection.execute("PRAGMA synchronous=NORMAL")
        with self._lock:
            if path not in self._held:
                self._held[path] = sqlite3.connect(path, timeout=0, check_same_thread=False)
            self._held.move_to_end(path)
            # It holds the log once it has read in it, and there is none before the file is set up.
            with contextlib.suppress(sqlite3.OperationalError):
                self._held[path].execute("PRAGMA schema_version").fetchone()
            if len(self._held) > MOST_HELD:
                self._held.popitem(last=False)[1].close()

    def close(self) -> None:
        with self._lock:
            for spare in self._held.values():
                spare.close()
            self._held.clear()


def _file_of(connection: Any) -> str:
    if not isinstance(connection, sqlite3.Connection):
        return ""
    return str(connection.execute("PRAGMA database_list").fetchone()[2])
