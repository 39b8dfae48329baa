"""A model switch: the old set stays active until the new one is complete."""

import shutil
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from ingest_assets.app.checks import tables_of_another_set
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.home import open_home
from ingest_assets.app.model_switch import pending_switch
from ingest_assets.app.repair import clean_up
from ingest_assets.app.status import status_object
from ingest_assets.cli.plan import plan_object
from ingest_assets.storage.model_sets import UNKNOWN, read_table_set
from ingest_assets.storage.parquet import read_footer
from ingest_tests.defs.sets.world import UNTIL_CHUNKS, World


def test_readers_see_the_old_set_until_the_new_one_is_complete(world: World, tmp_path: Path):
    """Then they see only the new one, byte-equal to a clean rebuild."""
    old, (first, second) = world.served(), world.batches

    world.run(4, first)
    half, switches = world.served(), status_object(open_home(world.root / "home", read_only=True))["sets"]
    world.run(4, second)

    assert len(old) == 2
    assert half == old
    assert [(each["batches"], each["batches_missing"]) for each in switches] == [(2, [second])]
    assert "1 of 2 batches done, missing " + second in switches[0]["summary"]
    assert world.served() == world.rebuilt(4, tmp_path)
    assert pending_switch(world.home(4), "lexical") is None


@pytest.mark.graph
def test_documents_with_new_chunks_are_found_by_the_old_ones_until_the_new_set_is_complete(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """Another model often means other chunks; the active set must not lose rows during the switch."""
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
    assert pending_switch(world.home(4), "lexical") is None
    assert found == chunks


@pytest.mark.graph
def test_an_open_home_follows_a_switch_by_another_process(world: World):
    """Servers keep their home open; the path of a set is read each time."""
    home = world.home(4)
    before = home.spec("lexical").asset

    world.run(4)

    assert before == f"embeddings/lexical@{home.requested_sets['lexical'].set}"
    assert home.spec("lexical").asset == "embeddings/lexical"


def test_a_plan_shows_the_cost_of_a_switch_and_changes_nothing(world: World):
    """A changed setting can cost a million vectors; the plan must show it first."""
    world.home(4)
    before = sorted(str(path) for path in world.root.rglob("*"))

    home = open_home(world.root / "home", read_only=True)
    found = plan_object(home, None, ["lexical"], RunOptions())

    assert [(each["family"], each["documents_to_embed"]) for each in found["sets"]] == [("lexical", 3)]
    assert sorted(str(path) for path in world.root.rglob("*")) == before


def test_switching_back_computes_nothing(world: World):
    """The previous set is kept; older ones are removed."""
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
def test_switching_back_before_the_new_set_is_complete_keeps_the_old_one(world: World):
    """The incomplete set is removed by the nightly clean-up once it is a day old."""
    old = world.served()
    world.run(4, world.batches[0])

    world.run(1)

    assert world.served() == old
    assert len(_beside(world)) == 1
    home = world.home(1)
    assert (clean_up(home).sets, len(_beside(world))) == (0, 1)
    tomorrow = _beside(world)[0].stat().st_mtime + 90_000
    assert (clean_up(home, tomorrow).sets, _beside(world)) == (1, [])


@pytest.mark.graph
def test_a_deleted_document_leaves_every_set(world: World):
    """Also the active one, which is otherwise not written, and the previous one."""
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
def test_tables_without_a_set_are_active_until_a_set_is_complete(world: World, tmp_path: Path):
    """No migration is needed."""
    for path in _tables(world):
        _without_set(path)
    world.home(1).layout.set_state("embeddings/lexical").unlink()
    old, (first, second) = world.served(), world.batches
    assert {read_table_set(path).set for path in _tables(world)} == {UNKNOWN}

    world.run(1, first)
    half = world.served()
    world.run(1, second)

    assert half == old
    assert world.served() == world.rebuilt(1, tmp_path)
    assert _beside(world) == []


@pytest.mark.graph
def test_a_materialization_has_its_set_and_whether_it_is_active(world: World):
    """In the web UI."""
    first, second = world.batches
    world.run(4, first)
    half = _metadata(first)
    world.run(4, second)
    whole = _metadata(second)

    assert half["set"] == whole["set"] == world.home(4).requested_sets["lexical"].set
    assert (half["set_is_current"], half["batches_missing"]) == (False, 1)
    assert (whole["set_is_current"], whole["batches_missing"]) == (True, 0)
    assert half["dagster/table_name"] == "embeddings/lexical"
    assert Path(whole["dagster/uri"].removeprefix("file://")).is_file()


@pytest.mark.graph
def test_tables_of_two_models_in_one_family_are_named(world: World):
    """This needs a manual copy, and is detected."""
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
