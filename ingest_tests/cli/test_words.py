"""Lines about many failures, queries without vectors, and active models."""

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
    failures = [{"doc_id": f"d{n}", **denied} for n in range(500)]
    failures[1:1] = [{"doc_id": "e1", **bad}, {"doc_id": "e2", **bad}]

    assert failure_lines(failures) == [
        "failed: 500 documents (d0, d1, d2, …) [dense E_ENDPOINT_DENIED] No key.",
        "failed: 2 documents (e1, e2) [doctags E_PARSE_EMPTY] It is empty.",
    ]


def test_the_error_says_that_the_queries_have_no_vectors():
    """The documents do have vectors; an HTTP status alone would point to them."""
    with serving(lambda n, texts: refused(500)) as server:
        says = r"^The queries could not be embedded, so nothing was searched: The endpoint http"
        with pytest.raises(IngestError, match=says):
            query_vectors(options_for(server.url, retries=0), ["When does a colony swarm?"])
        close_dense()


@pytest.mark.graph
def test_the_active_model_and_a_switch_are_reported(ingest: Command, notes: Path):
    """Otherwise a model switch would be silent."""
    (ingest.home / "ingest.toml").write_text('[execution]\nrun_on = "inline"\n')
    first = ingest("all", "--input", notes).stdout
    before = ingest.json("status")["serving"]
    switched = ingest("all", INGEST_EMBEDDINGS__LEXICAL__MIN_TERM_CHARS="2").stdout
    after = ingest.json("status", INGEST_EMBEDDINGS__LEXICAL__MIN_TERM_CHARS="2")["serving"]

    assert "is now active" not in first
    changed = f"lexical: {after['lexical']['name']} is now active (was {before['lexical']['name']})."
    assert changed in switched.splitlines()
    assert "dense: " not in switched
    assert before["dense"] == after["dense"]
    assert f"Active model sets: dense ({before['dense']['model']}), lexical (set " in ingest("status").stdout


@pytest.mark.graph
def test_a_retry_reports_a_model_switch(ingest: Command, notes: Path):
    """It embeds, so it can complete a switch, like every other command that embeds."""
    (ingest.home / "ingest.toml").write_text('[execution]\nrun_on = "inline"\n')
    (notes / "empty.md").touch()
    ingest("all", "--input", notes, check=1)

    said = ingest(
        "failures", "retry", "--all", check=1, INGEST_EMBEDDINGS__LEXICAL__MIN_TERM_CHARS="2"
    ).stdout
    told = ingest.json("failures", "retry", "--all", check=1)

    (line,) = [line for line in said.splitlines() if "is now active" in line]
    assert line.startswith("lexical: set ")
    assert list(told["took_over"]) == ["lexical"]
    new, old = line.removeprefix("lexical: ").removesuffix(").").split(" is now active (was ")
    assert told["took_over"]["lexical"] == f"lexical: {old} is now active (was {new})."


@pytest.mark.graph
def test_two_sets_of_one_model_have_distinct_names(ingested: Command):
    """Shorter vectors are another set, and the model has the same name."""
    before = ingested.json("status")["serving"]["dense"]
    meanwhile = ingested("status", INGEST_EMBEDDINGS__DENSE__DIM="64").stdout
    switched = ingested("all", INGEST_EMBEDDINGS__DENSE__DIM="64").stdout
    after = ingested.json("status", INGEST_EMBEDDINGS__DENSE__DIM="64")["serving"]["dense"]

    model = before["model"]
    assert (before["name"], after["name"]) == (model, model)
    assert f"Active model sets: dense ({model} set {before['set']}), lexical (" in meanwhile
    new, old = (f"{model} set {each['set']}" for each in (after, before))
    assert f"dense: {new} is now active (was {old})." in switched.splitlines()


@pytest.mark.graph
def test_sparse_vectors_are_counted_where_a_model_is_configured(ingest: Command, notes: Path, tmp_path: Path):
    """In the text of a run and of the status, and in their objects; without a model, nowhere."""
    (ingest.home / "ingest.toml").write_text('[execution]\nrun_on = "inline"\n')
    without = ingest("all", "--input", notes).stdout
    status_without = ingest("status").stdout
    model = str(write_model(tmp_path / "splade"))

    ran = ingest("all", INGEST_EMBEDDINGS__SPARSE__MODEL=model).stdout
    status = ingest("status", INGEST_EMBEDDINGS__SPARSE__MODEL=model)

    result = ingest.json("status", INGEST_EMBEDDINGS__SPARSE__MODEL=model)
    count = result["chunks"]
    assert result["sparse"] == result["vectors"] == count > 0
    assert f"{count} chunks, {count} dense and {count} sparse vectors, 0 failed" in ran
    assert f"{count} chunks, {count} dense, {count} sparse and {count} lexical vectors." in status.stdout
    assert re.search(r" \d+ chunks, (\d+) vectors, 0 failed", without)
    assert re.search(r" \d+ dense and \d+ lexical vectors\.", status_without)
