"""Dagster's own SQLite storage, with its files kept open: what commands store their runs and events with.

Dagster makes an engine, a connection and every statement anew for each event, and SQLite merges its log into
the file and flushes both whenever the last connection closes. Here they stay. Files, tables and rows are
Dagster's: servers and plain `dagster` commands use the same files, at the same time too.

Between merges the last events outlive the end of every process, but perhaps not that of the machine: tables
and ledger do not depend on them, and a run without an end counts as failed.
"""

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dagster._core.events.log import EventLogEntry
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.schedules import SqliteScheduleStorage
from dagster._core.storage.sqlite_storage import (
    DagsterSqliteStorage,
    _event_logs_directory,
    _runs_directory,
    _schedule_directory,
)
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, inspect

from ingest_assets.defs.kept_files import KeptFiles
from ingest_assets.defs.run_files import make_run_file


class KeptEvents(SqliteEventLogStorage):
    """A file for each run, and one with what is asked over all of them."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._files = KeptFiles()
        self._tables: set[str] = set()
        super().__init__(base_dir, inst_data)

    @contextlib.contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            engine = self._files.engine(self.conn_string_for_shard(shard))
            if shard not in self._initialized_dbs or not Path(self.path_for_shard(shard)).exists():
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.begin() as connection:
                yield connection

    def has_table(self, table_name: str) -> bool:
        """Asked for each event, also by those who hold the lock; a table that is there stays."""
        if table_name not in self._tables:
            engine = self._files.engine(self.conn_string_for_shard(INDEX_SHARD_NAME))
            self._tables |= set(inspect(engine).get_table_names())
        return table_name in self._tables

    def _initdb(self, engine: Engine, for_index_shard: bool = False) -> None:
        make = functools.partial(super()._initdb, engine, for_index_shard)
        if for_index_shard:
            make()
        else:
            make_run_file(engine, make)

    def store_event(self, event: EventLogEntry) -> None:
        """As Dagster does; and who follows the run in the web UI, where its file is watched, hears of it."""
        super().store_event(event)
        os.utime(self.path_for_shard(event.run_id))

    def wipe(self) -> None:
        self._files.close()
        super().wipe()

    def dispose(self) -> None:
        super().dispose()
        self._files.close()


class KeptRuns(SqliteRunStorage):
    """One file with all runs and their tags."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._files = KeptFiles()
        super().__init__(conn_string, inst_data)

    @contextlib.contextmanager
    def connect(self) -> Iterator[Connection]:
        with self._files.engine(self._conn_string).begin() as connection:
            yield connection

    def dispose(self) -> None:
        super().dispose()
        self._files.close()


class KeptStorage(DagsterSqliteStorage):
    """The storages of an instance. Those of schedules, of which commands hardly ask, are Dagster's own."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        # In place of Dagster's, which would open and check every file with its own classes first.
        self.base_dir = base_dir
        self._inst_data = inst_data
        self._run_storage = KeptRuns.from_local(_runs_directory(base_dir))
        self._event_log_storage = KeptEvents(_event_logs_directory(base_dir))
        self._schedule_storage = SqliteScheduleStorage.from_local(_schedule_directory(base_dir))

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> "KeptStorage":
        return cls.from_local(inst_data=inst_data, **config_value)


def with_kept_files(ref: InstanceRef) -> InstanceRef:
    """The instance with its SQLite files kept open; one that stores elsewhere stays as it is."""
    stored = ref.storage_data
    dagsters_own = (DagsterSqliteStorage.__module__, DagsterSqliteStorage.__name__)
    if stored is None or (stored.module_name, stored.class_name) != dagsters_own:
        return ref
    kept = ConfigurableClassData(KeptStorage.__module__, KeptStorage.__name__, stored.config_yaml)
    return ref._replace(storage_data=kept)
