"""A command keeps Dagster's files open, and they stay Dagster's."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.runs import SqliteRunStorage

from ingest_assets.defs import run_files
from ingest_assets.defs.home import Home
from ingest_assets.defs.instance import open_instance
from ingest_assets.defs.kept_files import MOST_KEPT
from ingest_assets.defs.kept_storage import KeptEvents, with_kept_files


@dg.asset
def hives() -> dg.MaterializeResult:
    """Something to run."""
    return dg.MaterializeResult(metadata={"weighed": 3})


@pytest.fixture
def kept(home: Home) -> Iterator[dg.DagsterInstance]:
    """The instance as a command opens it."""
    with open_instance(home.layout, for_command=True) as instance:
        yield instance


def _run(instance: dg.DagsterInstance) -> str:
    return dg.materialize([hives], instance=instance).run_id


def _events(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    return [entry.to_json() for entry in instance.all_logs(run_id)]


def _file(home: Home, run_id: str) -> Path:
    return home.layout.state / "history" / "runs" / f"{run_id}.db"


def _open_logs(home: Home) -> set[str]:
    return {path.name for path in home.layout.state.rglob("*.db-wal")}


def _schema(path: Path) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as file:
        made = file.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
        version = file.execute("SELECT version_num FROM alembic_version").fetchall()
        return [*made, *version, *file.execute("PRAGMA journal_mode").fetchall()]


def test_servers_read_what_a_command_stores_while_it_is_still_open(home: Home, kept: dg.DagsterInstance):
    """The web UI shows a command's runs, on the same files."""
    run_id = _run(kept)

    with open_instance(home.layout) as server:
        assert not isinstance(server.event_log_storage, KeptEvents)
        assert server.get_run_by_id(run_id).status is dg.DagsterRunStatus.SUCCESS
        assert _events(server, run_id) == _events(kept, run_id)
        assert server.get_latest_materialization_event(dg.AssetKey("hives")).run_id == run_id


def test_a_command_reads_what_servers_store_meanwhile(home: Home, kept: dg.DagsterInstance):
    """Files that stay open show what others write."""
    first = _run(kept)
    with open_instance(home.layout) as server:
        second = _run(server)

    assert {run.run_id for run in kept.get_runs()} == {first, second}
    assert kept.get_latest_materialization_event(dg.AssetKey("hives")).run_id == second


def test_files_are_those_that_dagster_makes(home: Home, kept: dg.DagsterInstance):
    """An instance can go back at any time, so a copied file is like one that Dagster made itself."""
    first, second = _run(kept), _run(kept)
    with open_instance(home.layout) as server:
        by_dagster = _run(server)

    assert _schema(_file(home, first)) == _schema(_file(home, by_dagster))
    assert _schema(_file(home, second)) == _schema(_file(home, by_dagster))


def test_files_are_let_go_of_with_the_instance(home: Home):
    """A command leaves no open log behind."""
    with open_instance(home.layout, for_command=True) as instance:
        run_id = _run(instance)
        assert f"{run_id}.db-wal" in _open_logs(home)

    assert _open_logs(home) == set()


def test_a_few_files_are_kept_and_no_more(home: Home, kept: dg.DagsterInstance):
    """Each run has a file of its own, and a command may have thousands of runs."""
    runs = [_run(kept) for _ in range(MOST_KEPT + 4)]

    assert len(_open_logs(home) - {"runs.db-wal", "schedules.db-wal"}) <= MOST_KEPT
    assert all(_events(kept, run_id) for run_id in runs)


def test_a_file_that_was_removed_is_made_again(home: Home, kept: dg.DagsterInstance):
    """An open connection would go on writing into a file that nobody finds any more."""
    run_id = _run(kept)
    for path in _file(home, run_id).parent.glob(f"{run_id}.db*"):
        path.unlink()

    kept.report_engine_event("Weighed again.", run_id=run_id, job_name="hives")

    with open_instance(home.layout) as server:
        assert [entry.message for entry in server.all_logs(run_id)] == ["Weighed again."]


def test_a_file_that_was_replaced_is_the_one_that_is_used(home: Home, kept: dg.DagsterInstance):
    """A home can be restored from a backup beside a command that only looks."""
    run_id = _run(kept)
    file = _file(home, run_id)
    with (
        contextlib.closing(sqlite3.connect(file)) as found,
        contextlib.closing(sqlite3.connect(file.with_suffix(".other"))) as other,
    ):
        found.backup(other)
        other.execute("DELETE FROM event_logs")
        other.commit()
    for path in file.parent.glob(f"{run_id}.db*"):
        path.unlink()
    file.with_suffix(".other").rename(file)

    assert _events(kept, run_id) == []


def test_events_of_many_threads_are_all_stored(kept: dg.DagsterInstance):
    """Stages log from several threads, and a run's file has one open connection."""
    run_id = _run(kept)
    before = len(_events(kept, run_id))
    together = threading.Barrier(4)

    def log(thread: int) -> None:
        together.wait()
        for number in range(25):
            kept.report_engine_event(f"{thread} {number}", run_id=run_id, job_name="hives")

    with ThreadPoolExecutor(together.parties) as threads:
        list(threads.map(log, range(together.parties)))

    assert len(_events(kept, run_id)) == before + 100


def test_a_page_that_follows_a_run_hears_of_every_event_before_its_end(home: Home, kept: dg.DagsterInstance):
    """The web UI watches the file, and what is new stands in the log beside it."""
    run_id = _run(kept)
    heard, arrived = [], threading.Event()

    def hear(entry: dg.EventLogEntry, _cursor: str) -> None:
        heard.append(entry.message)
        arrived.set()

    with open_instance(home.layout) as server:
        cursor = server.get_records_for_run(run_id).cursor
        server.watch_event_logs(run_id, cursor, hear)
        kept.report_engine_event("Weighed again.", run_id=run_id, job_name="hives")
        assert arrived.wait(timeout=30)
        server.end_watch_event_logs(run_id, hear)

    assert heard == ["Weighed again."]


def test_a_child_opens_files_of_its_own(kept: dg.DagsterInstance):
    """SQLite's connections do not survive a fork."""
    run_id = _run(kept)
    before = len(_events(kept, run_id))
    child = os.fork()
    if not child:
        kept.report_engine_event("From the child.", run_id=run_id, job_name="hives")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

    kept.report_engine_event("From the parent.", run_id=run_id, job_name="hives")

    assert len(_events(kept, run_id)) == before + 2


def test_a_killed_command_loses_no_event(home: Home):
    """What is not merged into the file yet is in the log beside it."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from ingest_assets.defs.instance import open_instance\n"
        "from ingest_assets.storage.layout import Layout\n"
        "from ingest_tests.defs.test_kept_storage import _run\n"
        "instance = open_instance(Layout(Path(sys.argv[1])), for_command=True)\n"
        "print(_run(instance), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    line = [sys.executable, "-c", code, str(home.layout.home)]
    killed = subprocess.run(line, capture_output=True, text=True, check=False)
    run_id = killed.stdout.strip()

    with open_instance(home.layout) as server:
        assert killed.returncode == -9
        assert server.get_run_by_id(run_id).status is dg.DagsterRunStatus.SUCCESS
        assert _events(server, run_id)


def test_a_file_that_was_left_half_made_is_made_whole(home: Home, kept: dg.DagsterInstance):
    """A process may be killed between making a file and its tables."""
    _run(kept)
    sqlite3.connect(_file(home, "half-made")).close()
    _file(home, "half-made").touch()

    kept.report_engine_event("Weighed again.", run_id="half-made", job_name="hives")

    assert len(_events(kept, "half-made")) == 1


def test_where_there_are_no_links_dagster_makes_each_file(
    kept: dg.DagsterInstance, home: Home, monkeypatch: pytest.MonkeyPatch
):
    """Some network file systems know none."""
    first = _run(kept)

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(run_files.os, "link", refused)
    second = _run(kept)

    assert _schema(_file(home, second)) == _schema(_file(home, first))
    assert not list(home.layout.state.rglob("*.tmp"))


def test_an_instance_that_stores_elsewhere_stays_as_it_is(home: Home):
    """PostgreSQL is a matter of the home's own dagster.yaml."""
    home.layout.instance_file.write_text(
        "storage:\n  custom:\n    module: dagster._core.storage.legacy_storage\n    class: CompositeStorage\n"
        "    config: {}\n"
    )
    ref = InstanceRef.from_dir(str(home.layout.home))

    assert with_kept_files(ref) is ref


def test_a_folder_that_the_home_names_for_dagsters_files_is_used(home: Home, tmp_path: Path):
    """`storage: sqlite: base_dir` of a home's own file holds for commands too."""
    elsewhere = tmp_path / "elsewhere"
    home.layout.instance_file.write_text(f"storage:\n  sqlite:\n    base_dir: {elsewhere}\n")

    with open_instance(home.layout, for_command=True) as instance:
        run_id = _run(instance)

    assert (elsewhere / "history" / "runs" / f"{run_id}.db").is_file()
    stored = SqliteRunStorage.from_local(str(elsewhere / "history"))
    assert [run.run_id for run in stored.get_runs()] == [run_id]
