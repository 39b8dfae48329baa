"""A new set from an endpoint that changes its model half-way: the old set stays active."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_assets.app.graph import stages_between
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.model_switch import pending_switch
from ingest_assets.embedders.providers import close_dense
from ingest_tests.conftest import write_notes
from ingest_tests.embedders.vector_server import DIM, right_answer, serving
from ingest_tests.parsing.vision_server import Reply
from ingest_tests.runs import run_batches

SETTINGS = """
[sources.notes]
path = "../notes"
[batches]
max_documents = 2
[execution]
run_on = "inline"
[embeddings.dense]
provider = "openai"
model = "{model}"
dim = {dim}
[embeddings.dense.remote]
url = "{url}"
retries = 0
"""
UNTIL_CHUNKS = stages_between("documents", "chunks")


class World:
    """A home whose vectors come from an endpoint."""

    def __init__(self, root: Path, url: str) -> None:
        self.path, self.url = root / "home", url
        self.path.mkdir()
        write_notes(root / "notes")

    def home(self, model: str) -> Home:
        """Return the home with this model in the settings."""
        (self.path / "ingest.toml").write_text(SETTINGS.format(model=model, dim=DIM, url=self.url))
        return open_home(self.path)

    def run(self, model: str, *batches: str, stages: tuple[str, ...] = ()) -> None:
        """Compute dense vectors of these batches, or of all."""
        run_batches(self.home(model), [*stages, "dense"], {}, reason="test", only=batches or None)

    def served(self) -> dict[str, bytes]:
        """Return the active tables, as a reader finds them."""
        return {
            path.stem: path.read_bytes() for path in (self.path / "data/embeddings/dense").glob("*.parquet")
        }


@pytest.fixture
def dims() -> dict[str, int]:
    """Set the current length of the endpoint's vectors."""
    return {"now": DIM}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dims: dict[str, int]) -> Iterator[World]:
    """A home with all notes embedded by the model `old`."""

    def script(number: int, texts: list[str]) -> Reply:
        return right_answer(texts, dims["now"])

    with serving(script) as server:
        world = World(tmp_path, server.url)
        monkeypatch.setenv("INGEST_HOME", str(world.path))
        monkeypatch.setenv("DAGSTER_HOME", str(world.path / "state"))
        monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")
        world.home("old").scan()
        world.run("old", stages=tuple(UNTIL_CHUNKS))
        yield world
        close_dense()


@pytest.mark.graph
@pytest.mark.parametrize("opens_anew", [False, True], ids=["in one process", "before the next"])
def test_a_model_change_half_way_does_not_activate_half_a_set(
    world: World, dims: dict[str, int], opens_anew: bool
):
    """The documents are fine: once the endpoint is fixed, the set is completed and active."""
    old, (first, second) = world.served(), world.home("new").ledger.batches()
    world.run("new", first)
    if opens_anew:
        close_dense()

    dims["now"] = 5
    world.run("new", second)

    found = pending_switch(world.home("new"), "dense")
    assert found is not None
    assert {error.code for error in found.failures} == {"E_ENDPOINT_DIMENSION"}
    assert len(old) == 2
    assert world.served() == old

    dims["now"] = DIM
    close_dense()
    world.run("new", second)
    assert pending_switch(world.home("new"), "dense") is None
    assert set(world.served()) == set(old)
    assert world.served() != old
