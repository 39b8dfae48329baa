"""Tables that a bad disk has damaged: named in one line, put aside, and made again by the next runs."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ingest_assets.embedders.bm25 import LexicalIndex
from ingest_assets.model.errors import TableDamaged
from ingest_tests.conftest import Command, write_notes
from ingest_tests.rows import zero_the_rows

STAGES = ["documents", "doctags", "admission", "chunks", "embeddings/dense", "embeddings/lexical"]


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def put_a_folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A home in which three notes are ingested."""
    command = Command(tmp_path_factory.mktemp("home"))
    command("all", "--input", write_notes(tmp_path_factory.mktemp("in") / "notes"))
    return command


@pytest.fixture
def home(whole: Command, tmp_path: Path) -> Command:
    """A copy of it."""
    shutil.copytree(whole.home, tmp_path / "home", ignore=shutil.ignore_patterns("*.sock"))
    return Command(tmp_path / "home")


def table_of(home: Command, stage: str) -> Path:
    (path,) = (home.home / "data" / stage).glob("*.parquet")
    return path


@pytest.mark.parametrize("stage", ["doctags", "chunks"])
def test_a_table_with_damaged_rows_is_named_in_one_line(home: Command, stage: str) -> None:
    """Not in a traceback, by those who only look; and they change nothing."""
    path = table_of(home, stage)
    zero_the_rows(path)
    before = path.read_bytes()

    for command in (["plan"], ["status"], ["inspect", "notes:feeding.md"]):
        said = home(*command, check=None)
        assert said.returncode in (0, 1)
        lines = said.stderr.strip().splitlines()
        assert not lines or (len(lines) == 1 and f"{path} is damaged" in lines[0])
    assert path.read_bytes() == before


def test_an_index_of_damaged_tables_names_the_file(home: Command) -> None:
    """It is opened by programs that know nothing of this one."""
    path = table_of(home, "embeddings/lexical")
    zero_the_rows(path)

    with pytest.raises(TableDamaged, match=rf"{path.name} is damaged .*; remove it and run"):
        LexicalIndex.open(home.home / "data")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "damage"),
    [
        *((stage, zero_the_rows) for stage in STAGES),
        ("documents", cut_off),
        ("admission", empty),
        ("chunks", put_a_folder_in_its_place),
    ],
)
def test_a_damaged_table_is_made_again_when_it_is_needed(
    home: Command, stage: str, damage: Callable[[Path], None]
) -> None:
    """All tables below are lost: the first run may find the damage, the second mends it; no row is lost."""
    before, path = home.hashes(), table_of(home, stage)
    below = STAGES[STAGES.index(stage) + 1 :] if not stage.startswith("embeddings") else []
    damage(path)
    for other in below:
        table_of(home, other).unlink()

    first = home("all", check=None)
    if first.returncode:
        assert "Traceback" not in first.stdout + first.stderr
        assert f"{path} was damaged and is put aside as" in first.stdout + first.stderr
        home("all")
    if below:
        pq.ParquetFile(path).read()
        assert home.hashes() == before
