"""A set without a row is replaced by the next set at once, complete or not."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from ingest_assets.app.execution import RunOptions
from ingest_assets.app.home import open_home
from ingest_assets.app.model_switch import cut_over, pending_switch, replace_empty_set
from ingest_assets.app.status import status_object
from ingest_assets.cli.plan import plan_object, set_sentence
from ingest_assets.core.errors import ContractBroken
from ingest_assets.defs.automation import INGEST_ALL
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.instance import open_instance
from ingest_assets.defs.keys import asset_key, batches
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.storage.locks import FileLock
from ingest_tests.defs.sets.world import World

FAMILY = "embeddings/lexical"


@dataclass
class Faults:
    """The documents for which the stage fails; a part of all ids fails all."""

    names: list[str] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    """No faults yet."""
    made, faults = LexicalStage.rows, Faults()

    def rows(self, item, context):
        faults.meanwhile()
        if any(name in item.item_id for name in faults.names):
            raise ContractBroken("a fault")
        return made(self, item, context)

    monkeypatch.setattr(LexicalStage, "rows", rows)
    return faults


@pytest.fixture
def empty(world: World, faults: Faults) -> World:
    """A home in which every document of the first set has failed."""
    shutil.rmtree(world.root / "home" / "data" / "embeddings")
    faults.names = ["notes"]
    world.run(1)
    faults.names = []
    assert len(world.served()) == 2
    assert world.documents() == set()
    return world


@pytest.mark.graph
def test_the_next_set_is_active_at_once_although_a_document_failed(empty: World, faults: Faults):
    """Where nothing was found before, one failure of many must not block the others."""
    faults.names = ["varroa"]

    empty.run(4)

    assert pending_switch(empty.home(4), "lexical") is None
    assert empty.documents() == {"notes:swarm.md", "notes:feeding.md"}


@pytest.mark.graph
def test_the_next_set_is_active_from_its_first_batch(empty: World, faults: Faults):
    """Also in a run of the servers: it writes directly to the active path."""
    first, home, places = empty.batches[0], empty.home(4), []
    faults.meanwhile = lambda: places.append(home.asset("lexical"))
    job = build_definitions().resolve_job_def(INGEST_ALL)
    with open_instance(home.layout) as instance:
        instance.add_dynamic_partitions(batches.name or "", [first])
        selection = [asset_key("lexical")]

        job.execute_in_process(instance=instance, partition_key=first, asset_selection=selection)

    assert set(places) == {FAMILY}
    assert list(empty.served()) == [first]
    assert empty.documents()


def test_a_first_run_stopped_before_any_table_does_not_block_the_next(world: World):
    """It has already recorded its set."""
    shutil.rmtree(world.root / "home" / "data" / "embeddings")
    home = world.home(1)
    home.family("lexical").claim(home.requested_sets["lexical"])

    world.run(4, world.batches[0])

    assert list(world.served()) == [world.batches[0]]


@pytest.mark.graph
def test_a_set_that_waited_for_an_empty_one_becomes_active(empty: World):
    """For homes that are in this state already, or whose other run wrote until now."""
    home = empty.home(4)
    other = FileLock(home.layout.family_lock(FAMILY), shared=True)
    other.acquire()
    empty.run(4, empty.batches[0])
    beside, said = empty.documents(), status_object(open_home(home.layout.home, read_only=True))
    other.release()

    cut_over(home, "lexical", lambda _line: None)

    assert beside == set()
    assert said["serving"] == {}
    assert "has no rows, so set" in said["sets"][0]["summary"]
    assert "1 of 2 batches done, missing " + empty.batches[1] in said["sets"][0]["summary"]
    assert list(empty.served()) == [empty.batches[0]]
    assert empty.documents()


@pytest.mark.graph
def test_of_two_new_sets_only_the_first_writer_takes_the_empty_place(empty: World, faults: Faults):
    """For servers with other settings: a folder never has tables of two sets."""
    four = empty.home(4)
    five = empty.home(5)
    said: list[str] = []
    faults.meanwhile = lambda: replace_empty_set(five, "lexical", said.append)

    empty.run(4)

    assert "has no rows, so" in said[0]
    current = four.family("lexical").serving()
    assert current is not None
    assert current.set == four.requested_sets["lexical"].set
    assert five.asset("lexical") == f"{FAMILY}@{five.requested_sets['lexical'].set}"
    empty.run(5, empty.batches[0])
    assert four.family("lexical").serving() == current


def test_a_plan_says_that_the_active_set_has_no_rows(empty: World):
    """And not that it stays active."""
    empty.home(4)

    found = plan_object(open_home(empty.root / "home", read_only=True), None, ["lexical"], RunOptions())

    assert "has no rows and is replaced at once" in set_sentence(found["sets"][0])
    assert found["sets"][0]["documents_to_embed"] == 3


@pytest.mark.graph
def test_a_set_with_a_row_is_not_replaced_by_an_incomplete_one(empty: World, faults: Faults):
    """Even one searchable document must not be lost."""
    faults.names = ["swarm", "feeding"]
    empty.run(4)
    old = empty.served()
    faults.names = ["varroa"]

    empty.run(5)

    assert empty.documents() == {"notes:varroa.html"}
    assert empty.served() == old
