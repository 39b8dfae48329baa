"""A home set by the environment, and a real Dagster instance on it."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from ingest_assets.app.home import Home, open_home
from ingest_assets.defs.instance import open_instance
from ingest_tests.conftest import write_notes


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty home set by the environment, as the servers see it."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("INGEST_HOME", str(path))
    monkeypatch.setenv("DAGSTER_HOME", str(path / "state"))
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")
    return open_home(path)


@pytest.fixture
def instance(home: Home) -> Iterator[dg.DagsterInstance]:
    """The home's instance, with real SQLite and real files."""
    instance = open_instance(home.layout)
    yield instance
    instance.dispose()


@pytest.fixture
def watched(home: Home, tmp_path: Path) -> Path:
    """A folder with three notes that the home watches."""
    folder = write_notes(tmp_path / "notes")
    home.watch(folder)
    return folder
