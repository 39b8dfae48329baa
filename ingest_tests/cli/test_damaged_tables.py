"""Damaged tables are reported in one line, moved to quarantine, and rebuilt by the next runs."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ingest_assets.core.errors import TableDamaged
from ingest_assets.search.bm25 import LexicalIndex
from ingest_tests.conftest import Command
from ingest_tests.rows import zero_the_rows

STAGES = ["documents", "doctags", "admission", "chunks", "embeddings/dense", "embeddings/lexical"]


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def put_a_folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


def table_of(home: Command, stage: str) -> Path:
    (path,) = (home.home / "data" / stage).glob("*.parquet")
    return path


@pytest.mark.parametrize("stage", ["doctags", "chunks"])
def test_a_table_with_damaged_rows_is_named_in_one_line(ingested: Command, stage: str) -> None:
    """Read-only commands report it without a traceback and change nothing."""
    path = table_of(ingested, stage)
    zero_the_rows(path)
    before = path.read_bytes()

    for command in (["plan"], ["status"], ["inspect", "notes:feeding.md"]):
        said = ingested(*command, check=None)
        assert said.returncode in (0, 1)
        lines = said.stderr.strip().splitlines()
        assert not lines or (len(lines) == 1 and f"{path} is damaged" in lines[0])
    assert path.read_bytes() == before


def test_an_index_of_damaged_tables_names_the_file(ingested: Command) -> None:
    """Other programs read it without this package."""
    path = table_of(ingested, "embeddings/lexical")
    zero_the_rows(path)

    with pytest.raises(TableDamaged, match=rf"{path.name} is damaged .*Remove it and run"):
        LexicalIndex.open(ingested.home / "data")


@pytest.mark.graph
@pytest.mark.parametrize(
    ("stage", "damage"),
    [
        *((stage, zero_the_rows) for stage in STAGES),
        ("documents", cut_off),
        ("admission", empty),
        ("chunks", put_a_folder_in_its_place),
    ],
)
def test_a_damaged_table_is_rebuilt_when_it_is_needed(
    ingested: Command, stage: str, damage: Callable[[Path], None]
) -> None:
    """With all tables below lost, the first run finds the damage and the second rebuilds; no row is lost."""
    before, path = ingested.hashes(), table_of(ingested, stage)
    below = STAGES[STAGES.index(stage) + 1 :] if not stage.startswith("embeddings") else []
    damage(path)
    for other in below:
        table_of(ingested, other).unlink()

    first = ingested("all", check=None)
    if first.returncode:
        assert "Traceback" not in first.stdout + first.stderr
        assert f"{path} is damaged and was moved to" in first.stdout + first.stderr
        ingested("all")
    if below:
        pq.ParquetFile(path).read()
        assert ingested.hashes() == before
