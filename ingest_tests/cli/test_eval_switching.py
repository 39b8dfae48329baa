"""`ingest eval retrieval` after a change of settings evaluates the new settings, not the active model set."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.app.home import open_home
from ingest_assets.app.search import chunk_rankings
from ingest_assets.core.errors import ContractBroken
from ingest_assets.embedders.providers import close_dense
from ingest_assets.stages.lexical import LexicalStage
from ingest_tests.conftest import Command, write_notes
from ingest_tests.embedders.vector_server import answer_of, serving
from ingest_tests.parsing.vision_server import Reply, refused

SETTINGS = """
[execution]
run_on = "inline"
[chunks]
max_tokens = {tokens}
[embeddings.lexical]
min_term_chars = {chars}
[embeddings.dense]
provider = "openai"
model = "{model}"
dim = {dim}
[embeddings.dense.remote]
url = "{url}"
retries = 0
"""
TOPICS = ("swarm", "oxalic", "sugar")
QUERIES = {"swarm": "When does a swarm leave?", "oxalic": "Who takes oxalic acid?", "sugar": "Sugar syrup?"}
ANSWERS = {"swarm": "swarm.md", "oxalic": "varroa.html", "sugar": "feeding.md"}


@dataclass
class Model:
    """The model of an endpoint: each topic has its own direction, which `turn` rotates."""

    dim: int = 8
    turn: int = 0
    refuses: Callable[[str], bool] = lambda _text: False

    def answer(self, texts: list[str]) -> Reply:
        if any(self.refuses(text) for text in texts):
            return refused(400)
        return answer_of(
            [
                {"object": "embedding", "index": at, "embedding": self._vector(text).tolist()}
                for at, text in enumerate(texts)
            ]
        )

    def _vector(self, text: str) -> np.ndarray:
        found = [topic in text.lower() for topic in TOPICS]
        places = np.eye(self.dim)[[*np.roll(range(3), self.turn), 3]]
        return places[found.index(True) if any(found) else 3]


@dataclass
class World:
    """A labelled set, and a home whose vectors come from `model`."""

    ingest: Command
    folder: Path
    url: str
    model: Model

    def evaluate(self, name: str, tokens: int, chars: int, check: int) -> dict:
        """Return the report with these settings."""
        self.settle(name, tokens, chars)
        return self.ingest.json("eval", "retrieval", *self.options, check=check)

    def settle(self, name: str, tokens: int = 256, chars: int = 1) -> None:
        close_dense()
        settings = SETTINGS.format(tokens=tokens, chars=chars, model=name, dim=self.model.dim, url=self.url)
        (self.ingest.home / "ingest.toml").write_text(settings)

    @property
    def options(self) -> tuple[object, ...]:
        return "--set", "files", "--path", self.folder


@pytest.fixture
def world(ingest: Command, tmp_path: Path) -> Iterator[World]:
    """Three notes, each the answer to a query."""
    folder, model = tmp_path / "labelled", Model()
    write_notes(folder / "documents")
    lines = [f'{{"id": "{query}", "text": "{text}"}}\n' for query, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("".join(lines))
    (folder / "qrels.tsv").write_text("".join(f"{query}\t{name}\t1\n" for query, name in ANSWERS.items()))
    with serving(lambda n, texts: world.model.answer(texts)) as server:
        world = World(ingest, folder, server.url, model)
        yield world
        close_dense()


@pytest.mark.parametrize(
    "dim", [pytest.param(8, id="as long"), pytest.param(4, id="shorter", marks=pytest.mark.graph)]
)
def test_a_new_model_is_evaluated_although_a_failed_document_keeps_it_inactive(world: World, dim: int):
    """The old model's vectors do not fit its queries, and the documents are chunked differently."""
    first = world.evaluate("old", tokens=256, chars=1, check=0)
    world.model = Model(dim, turn=1, refuses=lambda text: "December" in text)

    second = world.evaluate("new", tokens=16, chars=1, check=1)

    assert first["rankings"]["dense"]["mrr"] == 1.0
    assert second["models"]["dense"]["model_id"].startswith("new@")
    assert second["counts"]["failed"] == 1
    assert second["rankings"]["dense"]["mrr"] == pytest.approx(2 / 3, abs=1e-3)
    assert second["rankings"]["lexical"]["mrr"] == 1.0
    assert list((Path(second["home"]) / "data" / "embeddings").glob("dense@*"))


@pytest.mark.graph
def test_other_terms_are_evaluated_with_their_own_tables_and_statistics(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """The stored statistics are those of the active set."""
    world.evaluate("old", tokens=256, chars=1, check=0)
    made = LexicalStage.rows

    def rows(self, item, context):
        if "feeding" in item.item_id:
            raise ContractBroken("a fault")
        return made(self, item, context)

    monkeypatch.setattr(LexicalStage, "rows", rows)

    second = world.evaluate("old", tokens=256, chars=4, check=1)

    assert '"min_term_chars":4' in second["models"]["lexical"]["options"]
    assert second["rankings"]["lexical"]["mrr"] == pytest.approx(2 / 3, abs=1e-3)
    assert second["rankings"]["dense"]["mrr"] == 1.0


@pytest.mark.graph
def test_a_model_that_made_no_vector_is_one_line(world: World):
    """Old vectors would give it wrong figures."""
    world.evaluate("old", tokens=256, chars=1, check=0)
    world.model = Model(refuses=lambda text: True)
    world.settle("new")

    done = world.ingest("eval", "retrieval", *world.options, check=1)

    (line,) = [line for line in done.stderr.splitlines() if line.startswith("ingest")]
    assert re.search("dense has no rows of new@.* to search: .* status 400", line)
    assert "Traceback" not in done.stderr


@pytest.mark.graph
def test_rows_of_removed_chunks_are_not_found(world: World):
    """A batch that was chunked again but not embedded still has them; it is reported as not complete."""
    world.settle("old")
    world.ingest("all", "--input", world.folder / "documents")
    home = open_home(world.ingest.home)
    chunks = home.tables("chunks").scan().select("doc_id", "chunk_id").collect()
    kept = {chunk for document, chunk in chunks.iter_rows() if "varroa" not in document}

    found = chunk_rankings(home, QUERIES, kept)

    assert set(found["dense"]["oxalic"]) == kept
    assert found["lexical"]["oxalic"] == []
    assert found["lexical"]["swarm"]
