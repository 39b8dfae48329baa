"""Switching a family to other settings: the old set serves until the new one is whole."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from ingest_assets.cli.planning import plan_object
from ingest_assets.cli.runs import RunReport, run_batches
from ingest_assets.cli.status import status_object
from ingest_assets.defs.checks.predicates import tables_of_another_set
from ingest_assets.defs.graph import stages_between
from ingest_assets.defs.home import Home, open_home
from ingest_assets.defs.housekeeping import tidy
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.sets import building, cut_over
from ingest_assets.embedders.errors import TextTooLong
from ingest_assets.model.errors import ContractBroken, ItemTimeout
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.storage.footer import read_footer
from ingest_assets.storage.locks import FileLock
from ingest_assets.storage.sets import UNKNOWN, set_of
from ingest_tests.conftest import write_notes

UNTIL_CHUNKS = stages_between("documents", "chunks")
SETTINGS = """
[sources.notes]
path = "../notes"
[batches]
max_documents = 2
[execution]
run_on = "inline"
[embeddings.lexical]
min_term_chars = {chars}
"""


@dataclass
class World:
    """A home with notes in two batches; its settings decide which set of the lexical family is made."""

    root: Path

    def home(self, chars: int) -> Home:
        """With terms of so many characters."""
        (self.root / "home" / "ingest.toml").write_text(SETTINGS.format(chars=chars))
        return open_home(self.root / "home")

    def run(self, chars: int, *batches: str, stages: list[str] | None = None) -> RunReport:
        """The family's tables of these batches, or of all."""
        return run_batches(self.home(chars), stages or ["lexical"], {}, reason="test", only=batches or None)

    @property
    def batches(self) -> list[str]:
        return list(open_home(self.root / "home").ledger.batches())

    def served(self, asset: str = "embeddings/lexical") -> dict[str, str]:
        """What a reader finds: each batch with the bytes of its table."""
        paths = (self.root / "home" / "data" / asset).glob("*.parquet")
        return {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}

    def documents(self, asset: str = "embeddings/lexical") -> set[str]:
        """Whose rows a reader finds."""
        return set(pl.read_parquet(self.root / "home" / "data" / asset / "*.parquet")["doc_id"])

    def rebuilt(self, chars: int, tmp_path: Path) -> dict[str, str]:
        """What a home gets that has never seen other settings."""
        shutil.copytree(self.root, tmp_path / "rebuilt")
        fresh = World(tmp_path / "rebuilt")
        shutil.rmtree(fresh.root / "home" / "data" / "embeddings")
        fresh.run(chars)
        return fresh.served()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: chunked, and with terms of any length."""
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
    for file in (made / "home" / "state").glob("ledger.sqlite*"):  # what is still in its log counts, too
        shutil.copy(file, root / "home" / "state")
    _name(monkeypatch, root / "home")
    return World(root)


def _name(patch: pytest.MonkeyPatch, home: Path) -> None:
    patch.setenv("INGEST_HOME", str(home))
    patch.setenv("DAGSTER_HOME", str(home / "state"))
    patch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")


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


def test_a_home_that_is_open_follows_a_cut_over_by_another(world: World):
    """Servers keep theirs open; where a set's tables are is asked anew each time."""
    home = world.home(4)
    before = home.stages["lexical"].spec.asset

    world.run(4)

    assert before == f"embeddings/lexical@{home.set_mark('lexical').set}"
    assert home.stages["lexical"].spec.asset == "embeddings/lexical"


def test_a_plan_says_what_a_switch_means_and_changes_nothing(world: World):
    """Nobody should learn from the bill that a letter in the settings costs a million vectors."""
    world.home(4)
    before = sorted(str(path) for path in world.root.rglob("*"))

    home = open_home(world.root / "home", only_looks=True)
    found = plan_object(home, None, ["lexical"], StageRunConfig())

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


@pytest.mark.parametrize(
    ("error", "is_held"),
    [(ItemTimeout, True), (ZeroDivisionError, True), (ContractBroken, True), (TextTooLong, False)],
)
def test_only_what_can_never_be_done_does_not_hold_the_new_set_back(
    world: World, monkeypatch: pytest.MonkeyPatch, error: type[Exception], is_held: bool
):
    """An endpoint that is down for an hour must not cost what the old set has; nor must a bug."""
    old = world.served()
    whole = LexicalStage.rows
    monkeypatch.setattr(LexicalStage, "rows", _failing_for("varroa", error))

    world.run(4)

    found = building(world.home(4), "lexical")
    assert (world.served() == old) is is_held
    assert (found is not None) is is_held
    if found is not None:
        assert [each.item_id for each in found.holding] == ["notes:varroa.html"]
        assert "held back by 1 failed, first notes:varroa.html [E_" in found.as_line()
        monkeypatch.setattr(LexicalStage, "rows", whole)
        world.run(4)
    assert building(world.home(4), "lexical") is None
    assert len(world.documents()) == (3 if is_held else 2)


def test_a_set_without_a_row_never_replaces_one_that_has_some(world: World, monkeypatch: pytest.MonkeyPatch):
    """When nothing can be done at all, the settings are to blame and not the documents."""
    old = world.served()
    monkeypatch.setattr(LexicalStage, "rows", _failing_for("", TextTooLong))

    world.run(4)

    assert world.served() == old


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


def test_nobody_cuts_over_while_another_run_writes(world: World):
    """The last one to finish does; a command that finds nothing to compute does too."""
    old, home = world.served(), world.home(4)
    writer = FileLock(home.layout.family_lock("embeddings/lexical"), shared=True)
    writer.acquire()
    world.run(4)
    busy = world.served()
    writer.release()

    said: list[str] = []
    left = cut_over(home, "lexical", said.append)

    assert busy == old
    assert left is None
    assert "serves from now on" in said[0]
    assert world.served() != old


def test_a_materialisation_says_which_set_it_is_of_and_whether_it_serves(world: World):
    """In the web UI."""
    first, second = world.batches
    world.run(4, first)
    half = _metadata(first)
    world.run(4, second)
    whole = _metadata(second)

    assert half["set"] == whole["set"] == world.home(4).set_mark("lexical").set
    assert (half["set_is_current"], half["batches_missing"]) == (False, 1)
    assert (whole["set_is_current"], whole["batches_missing"]) == (True, 0)
    assert half["dagster/table_name"] == "embeddings/lexical"
    assert Path(whole["dagster/uri"].removeprefix("file://")).is_file()


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


def _failing_for(name: str, error: type[Exception]) -> Callable:
    made = LexicalStage.rows

    def rows(self, item, context):
        if name in item.item_id:
            raise error("a fault")
        return made(self, item, context)

    return rows
