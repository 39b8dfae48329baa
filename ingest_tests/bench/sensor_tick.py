"""The sensor over 100,000 unchanged files: the time of a tick, and the size of its cursor."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import dagster as dg

from ingest_assets.app.home import open_home
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.instance import open_instance
from ingest_assets.defs.resources import HomeResource
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.conftest import clean_environment

FILES = 100_000
FILES_PER_FOLDER = 1000
KIB = 1024


def measure(size: Size) -> list[Figure]:
    """Seconds of the second tick, and bytes of its cursor; the first one requests a run for every batch."""
    count = size.of(FILES)
    with tempfile.TemporaryDirectory() as folder, _environment(Path(folder)), _instance() as instance:
        _write_files(Path(folder) / "files", count)
        home = open_home()
        home.watch(Path(folder) / "files")
        started = time.perf_counter()
        assert home.scan().new == count
        taken_in_s = time.perf_counter() - started
        sensor = build_definitions().resolve_sensor_def("watched_folders")
        first, first_s = _tick(sensor, instance, None)
        second, second_s = _tick(sensor, instance, first.cursor)
    assert first.run_requests
    assert second.skip_reason is not None
    assert f"{count} files checked" in str(second.skip_reason.skip_message)
    return [
        Figure("files taken in", count / taken_in_s, "files/s"),
        Figure("a tick that requests every batch", first_s, "s"),
        Figure("a tick with nothing changed", second_s, "s", "<", 5),
        Figure("its cursor", len((second.cursor or "").encode()) / KIB, "KiB", "<", 10),
    ]


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """Set a home in the environment, as for servers; its files need not settle."""
    home = folder / "home"
    home.mkdir()
    mine = {
        "INGEST_HOME": str(home),
        "INGEST_AUTOMATION__SETTLE_SECONDS": "0",
        "DAGSTER_HOME": str(home / "state"),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }
    with mock.patch.dict(os.environ, clean_environment() | mine, clear=True):
        yield


@contextmanager
def _instance() -> Iterator[dg.DagsterInstance]:
    """Open the home's instance, with real SQLite and real files."""
    instance = open_instance(open_home().layout)
    try:
        yield instance
    finally:
        instance.dispose()


def _write_files(folder: Path, count: int) -> None:
    for number in range(count):
        if number % FILES_PER_FOLDER == 0:
            below = folder / f"{number // FILES_PER_FOLDER:03}"
            below.mkdir(parents=True)
        (below / f"{number:06}.md").write_text(str(number))


def _tick(
    sensor: dg.SensorDefinition, instance: dg.DagsterInstance, cursor: str | None
) -> tuple[dg.SensorResult, float]:
    context = dg.build_sensor_context(instance=instance, cursor=cursor, resources={"home": HomeResource()})
    started = time.perf_counter()
    result = sensor(context)
    seconds = time.perf_counter() - started
    assert isinstance(result, dg.SensorResult)
    return result, seconds
