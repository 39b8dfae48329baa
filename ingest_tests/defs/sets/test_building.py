"""Switching a family to other settings: the old set serves until the new one is whole."""

import shutil
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from ingest_assets.app.checks import tables_of_another_set
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.home import open_home
from ingest_assets.app.model_switch import building
from ingest_assets.app.repair import tidy
from ingest_assets.app.status import status_object
from ingest_assets.cli.plan import plan_object
from ingest_assets.storage.model_sets import UNKNOWN, set_of
from ingest_assets.storage.parquet import read_footer
from ingest_tests.defs.sets.world import UNTIL_CHUNKS, World


def test_readers_see_the_old_set_until_the_new_one_is_whole(world: World, tmp_path: Path):
    """And then only the new one, byte for byte that of a clean rebuild."""
    old, (first, second) = world.served(), world.batches

    world.run(4, first)
    half, said = world.served(), status_object(open_home(world.root / "home", only_looks=True))["sets"]
    world.run(4, second)

    assert len(old) == 2
    assert half == old
    assert [(each["batches"], each["batches_missing"]) for each in said] == [(2, [second])]
    assert "1 of 2 batches done, missing " + second in said[0]["summary"]
    assert world.served() == world.rebuilt(4, tmp_path)
    assert building(world.home(4), "lexical") is None


@pytest.mark.graph
def test_documents_that_are_cut_anew_are_found_as_they_were_until_the_new_set_is_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """Another model often means other chunks; what serves must not run empty meanwhile."""
    old, (first, second) = world.served(), world.batches
    monkeypatch.setenv("INGEST_CHUNKS__MAX_TOKENS", "16")

    world.run(4, first, stages=["chunks", "lexical"])
    half = world.served()
    world.run(4, second, stages=["chunks", "lexical"])

    chunks, found = (
        set(pl.read_parquet(world.root / "home" / "data" / asset / "*.parquet")["chunk_id"])
        for asset in ("chunks", "embeddings/lexical")
    )
    assert half == old
    assert building(world.home(4), "lexical") is None
    assert found == chunks


@pytest.mark.graph
def test_a_home_that_is_open_follows_a_cut_over_by_another(world: World):
    """Servers keep theirs open; where a set's tables are is asked anew each time."""
    home = world.home(4)
    before = home.spec("lexical").asset

    world.run(4)

    assert before == f"embeddings/lexical@{home.set_marks['lexical'].set}"
    assert home.spec("lexical").asset == "embeddings/lexical"


def test_a_plan_says_what_a_switch_means_and_changes_nothing(world: World):
    """Nobody should learn from the bill that a letter in the settings costs a million vectors."""
    world.home(4)
    before = sorted(str(path) for path in world.root.rglob("*"))

    home = open_home(world.root / "home", only_looks=True)
    found = plan_object(home, None, ["lexical"], RunOptions())

    assert [(each["family"], each["documents_to_embed"]) for each in found["sets"]] == [("lexical", 3)]
    assert sorted(str(path) for path in world.root.rglob("*")) == before


def test_switching_back_computes_nothing(world: World):
    """The set before is kept; a further one is not."""
    old = world.served()
    world.run(4)
    new = world.served()

    back = world.run(1)

    assert world.served() == old
    assert back.stages["lexical"].succeeded == 0
    assert set(new) == set(old)
    world.run(5)
    assert {path.name.partition("@")[0] for path in _beside(world)} == {"lexical"}
    assert len(_beside(world)) == 1


@pytest.mark.graph
def test_switching_back_before_the_new_set_is_whole_leaves_the_old_one(world: World):
    """What was begun is removed at night, once nobody has touched it for a day."""
    old = world.served()
    world.run(4, world.batches[0])

    world.run(1)

    assert world.served() == old
    assert len(_beside(world)) == 1
    home = world.home(1)
    assert (tidy(home).sets, len(_beside(world))) == (0, 1)
    tomorrow = _beside(world)[0].stat().st_mtime + 90_000
    assert (tidy(home, tomorrow).sets, _beside(world)) == (1, [])


@pytest.mark.graph
def test_a_deleted_document_leaves_every_set(world: World):
    """Also the old one, which is otherwise left as it is, and the one that is kept."""
    first = world.batches[0]
    world.run(4)
    world.run(5, first)
    (world.root / "notes" / "feeding.md").unlink()
    world.home(5).scan()

    world.run(5, first, stages=[*UNTIL_CHUNKS, "lexical"])

    sets = ["embeddings/lexical", *(f"embeddings/{path.name}" for path in _beside(world))]
    assert len(sets) == 3
    assert all("notes:feeding.md" not in world.documents(each) for each in sets)
    assert world.documents() == {"notes:swarm.md", "notes:varroa.html"}


@pytest.mark.graph
def test_tables_from_before_there_were_sets_serve_until_a_whole_set_is_there(world: World, tmp_path: Path):
    """Nobody has to do anything."""
    for path in _tables(world):
        _without_set(path)
    world.home(1).layout.set_mark("embeddings/lexical").unlink()
    old, (first, second) = world.served(), world.batches
    assert {set_of(path).set for path in _tables(world)} == {UNKNOWN}

    world.run(1, first)
    half = world.served()
    world.run(1, second)

    assert half == old
    assert world.served() == world.rebuilt(1, tmp_path)
    assert _beside(world) == []


@pytest.mark.graph
def test_a_materialisation_says_which_set_it_is_of_and_whether_it_serves(world: World):
    """In the web UI."""
    first, second = world.batches
    world.run(4, first)
    half = _metadata(first)
    world.run(4, second)
    whole = _metadata(second)

    assert half["set"] == whole["set"] == world.home(4).set_marks["lexical"].set
    assert (half["set_is_current"], half["batches_missing"]) == (False, 1)
    assert (whole["set_is_current"], whole["batches_missing"]) == (True, 0)
    assert half["dagster/table_name"] == "embeddings/lexical"
    assert Path(whole["dagster/uri"].removeprefix("file://")).is_file()


@pytest.mark.graph
def test_tables_of_two_models_in_one_family_are_named(world: World):
    """It takes a foreign hand, and is found."""
    first = world.batches[0]
    world.run(4, first)
    (beside,) = _beside(world)
    home = world.home(4)
    assert tables_of_another_set(home.tables("lexical")) == []

    shutil.copy(beside / f"{first}.parquet", home.layout.table("embeddings/lexical", "2000-01-01-0001"))

    found = tables_of_another_set(home.tables("lexical"))
    assert found == ["embeddings/lexical/2000-01-01-0001.parquet"]


def _beside(world: World) -> list[Path]:
    return sorted((world.root / "home" / "data" / "embeddings").glob("*@*"))


def _tables(world: World) -> list[Path]:
    return sorted((world.root / "home" / "data" / "embeddings" / "lexical").glob("*.parquet"))


def _metadata(batch: str) -> dict:
    with dg.DagsterInstance.get() as instance:
        records = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=dg.AssetKey(["embeddings", "lexical"]), asset_partitions=[batch]),
            1,
        ).records
    return {name: value.value for name, value in records[0].asset_materialization.metadata.items()}


def _without_set(path: Path) -> None:
    import pyarrow.parquet as pq

    footer = read_footer(path)
    assert footer is not None
    said = {key: value for key, value in footer.as_metadata().items() if key != "ingest.set"}
    rows = pq.read_table(path).replace_schema_metadata(None)
    with pq.ParquetWriter(path, rows.schema) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(said)
