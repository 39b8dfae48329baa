"""A home with two sets, made once and copied."""

import shutil
from pathlib import Path

import pytest

from ingest_tests.conftest import write_notes
from ingest_tests.defs.sets.world import UNTIL_CHUNKS, World


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home: chunked, with terms of any length."""
    root = tmp_path_factory.mktemp("sets")
    write_notes(root / "notes")
    (root / "home").mkdir()
    world = World(root)
    with pytest.MonkeyPatch.context() as patch:
        _name(patch, root / "home")
        world.home(1).scan()
        world.run(1, stages=[*UNTIL_CHUNKS, "lexical"])
    return root


@pytest.fixture
def world(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A copy of it."""
    root = tmp_path / "world"
    shutil.copytree(made / "notes", root / "notes")
    shutil.copytree(made / "home" / "data", root / "home" / "data")
    (root / "home" / "state").mkdir()
    for file in (made / "home" / "state").glob("ledger.sqlite*"):  # with its write-ahead log
        shutil.copy(file, root / "home" / "state")
    _name(monkeypatch, root / "home")
    return World(root)


def _name(patch: pytest.MonkeyPatch, home: Path) -> None:
    patch.setenv("INGEST_HOME", str(home))
    patch.setenv("DAGSTER_HOME", str(home / "state"))
    patch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")
