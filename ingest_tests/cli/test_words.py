"""What commands say of many failures, of a query that has no vector, and of who serves."""

import re
from pathlib import Path

import pytest

from ingest_assets.app.search import query_vectors
from ingest_assets.cli.output import failure_lines
from ingest_assets.core.errors import IngestError
from ingest_assets.embedders.providers import close_dense
from ingest_tests.conftest import Command
from ingest_tests.embedders.tiny_splade import write_model
from ingest_tests.embedders.vector_server import options_for, serving
from ingest_tests.parsing.vision_server import refused


def test_failures_of_one_cause_are_one_line():
    """One wrong setting fails five hundred documents in the same way."""
    denied = {"stage": "dense", "code": "E_ENDPOINT_DENIED", "message": "No key."}
    bad = {"stage": "doctags", "code": "E_PARSE_EMPTY", "message": "It is empty."}
    found = [{"doc_id": f"d{n}", **denied} for n in range(500)]
    found[1:1] = [{"doc_id": "e1", **bad}, {"doc_id": "e2", **bad}]

    assert failure_lines(found) == [
        "failed: 500 documents (d0, d1, d2, …) [dense E_ENDPOINT_DENIED] No key.",
        "failed: 2 documents (e1, e2) [doctags E_PARSE_EMPTY] It is empty.",
    ]


def test_queries_without_vectors_are_said_to_be_the_trouble():
    """The documents have theirs: who reads only of a status would look there."""
    with serving(lambda n, texts: refused(500)) as server:
        says = r"^The queries could not be embedded, so nothing was searched: The endpoint http"
        with pytest.raises(IngestError, match=says):
            query_vectors(options_for(server.url, retries=0), ["When does a colony swarm?"])
        close_dense()


@pytest.mark.graph
def test_who_serves_is_said_and_when_that_changes(ingest: Command, notes: Path):
    """A switch of models ends in silence otherwise."""
    (ingest.home / "ingest.toml").write_text('[execution]\nrun_on = "inline"\n')
    first = ingest("all", "--input", notes).stdout
    before = ingest.json("status")["serving"]
    switched = ingest("all", INGEST_EMBEDDINGS__LEXICAL__MIN_TERM_CHARS="2").stdout
    after = ingest.json("status", INGEST_EMBEDDINGS__LEXICAL__MIN_TERM_CHARS="2")["serving"]

    assert "serves from now on" not in first
    changed = f"lexical: {after['lexical']['name']} serves from now on (was {before['lexical']['name']})."
    assert changed in switched.splitlines()
    assert "dense: " not in switched
    assert before["dense"] == after["dense"]
    assert f"Served: dense by {before['dense']['model']}, lexical by set " in ingest("status").stdout


@pytest.mark.graph
def test_a_retry_says_who_serves_from_now_on(ingest: Command, notes: Path):
    """It embeds, and so it may complete a switch, as every other command that does."""
    (ingest.home / "ingest.toml").write_text('[execution]\nrun_on = "inline"\n')
    (notes / "empty.md").touch()
    ingest("all", "--input", notes, check=1)

    said = ingest(
        "failures", "retry", "--all", check=1, INGEST_EMBEDDINGS__LEXICAL__MIN_TERM_CHARS="2"
    ).stdout
    told = ingest.json("failures", "retry", "--all", check=1)

    (line,) = [line for line in said.splitlines() if "serves from now on" in line]
    assert line.startswith("lexical: set ")
    assert list(told["took_over"]) == ["lexical"]
    new, old = line.removeprefix("lexical: ").removesuffix(").").split(" serves from now on (was ")
    assert told["took_over"]["lexical"] == f"lexical: {old} serves from now on (was {new})."


@pytest.mark.graph
def test_two_sets_of_one_model_are_told_apart(ingested: Command):
    """Shorter vectors are another set, and the model has the same name."""
    before = ingested.json("status")["serving"]["dense"]
    meanwhile = ingested("status", INGEST_EMBEDDINGS__DENSE__DIM="64").stdout
    switched = ingested("all", INGEST_EMBEDDINGS__DENSE__DIM="64").stdout
    after = ingested.json("status", INGEST_EMBEDDINGS__DENSE__DIM="64")["serving"]["dense"]

    model = before["model"]
    assert (before["name"], after["name"]) == (model, model)
    assert f"Served: dense by {model} set {before['set']}, lexical by " in meanwhile
    new, old = (f"{model} set {each['set']}" for each in (after, before))
    assert f"dense: {new} serves from now on (was {old})." in switched.splitlines()


@pytest.mark.graph
def test_sparse_vectors_are_counted_where_a_model_is_configured(ingest: Command, notes: Path, tmp_path: Path):
    """In the words of a run and of the status, as in their objects; elsewhere nobody speaks of them."""
    (ingest.home / "ingest.toml").write_text('[execution]\nrun_on = "inline"\n')
    without = ingest("all", "--input", notes).stdout
    status_without = ingest("status").stdout
    model = str(write_model(tmp_path / "splade"))

    ran = ingest("all", INGEST_EMBEDDINGS__SPARSE__MODEL=model).stdout
    status = ingest("status", INGEST_EMBEDDINGS__SPARSE__MODEL=model)

    found = ingest.json("status", INGEST_EMBEDDINGS__SPARSE__MODEL=model)
    count = found["chunks"]
    assert found["sparse"] == found["vectors"] == count > 0
    assert f"{count} chunks, {count} dense and {count} sparse vectors, 0 failed" in ran
    assert f"{count} chunks, {count} dense, {count} sparse and {count} lexical vectors." in status.stdout
    assert re.search(r" \d+ chunks, (\d+) vectors, 0 failed", without)
    assert re.search(r" \d+ dense and \d+ lexical vectors\.", status_without)
