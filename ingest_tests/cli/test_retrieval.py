"""`ingest eval retrieval`: evaluate the shipped set, with gates that can fail."""

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ingest_tests.conftest import Command, write_notes

GATES = ("dense.ndcg@10=0.80", "lexical.ndcg@10=0.55", "fused.ndcg@10=0.75", "fused.recall@10=0.95")


def _gated(ingest: Command, check: int) -> dict:
    options = [word for gate in GATES for word in ("--at-least", gate)]
    return ingest.json("eval", "retrieval", *options, check=check)


def test_the_shipped_set_passes_the_gates_and_shuffled_vectors_do_not(ingest: Command):
    """The gate of CI: dense and lexical search find the answers, and vectors of other chunks fail it."""
    good = _gated(ingest, check=0)

    assert good["counts"]["searchable"] == good["counts"]["documents"] == 26
    assert all(gate["passed"] for gate in good["gates"])
    assert not (ingest.home / "data").exists()

    for family, columns in (("dense", ["vector"]), ("lexical", ["terms", "counts", "length"])):
        _shuffle(Path(good["home"]) / "data" / "embeddings" / family, columns)
    bad = _gated(ingest, check=1)

    assert not any(gate["passed"] for gate in bad["gates"][:3])


def _shuffle(folder: Path, columns: list[str]) -> None:
    """Give each chunk the vector of another."""
    (path,) = folder.glob("*.parquet")
    table = pq.ParquetFile(path).read()
    order = list(range(table.num_rows))
    random.Random(7).shuffle(order)
    for name in columns:
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(name), table[name].take(order))
    pq.write_table(table, path)


@pytest.fixture
def own_set(tmp_path: Path) -> tuple[object, ...]:
    """Options for a user's own set: two queries, one without a judgement."""
    folder = tmp_path / "labelled"
    write_notes(folder / "documents")
    (folder / "queries.jsonl").write_text('{"id": 1, "text": "When is May?"}\n{"id": 2, "text": "Why?"}\n')
    (folder / "qrels.tsv").write_text("1\tswarm.md\t1\n")
    return "--set", "files", "--path", folder


@pytest.mark.graph
def test_skipped_queries_are_counted(ingest: Command, own_set: tuple[object, ...]):
    """A query without a judgement must not disappear silently."""
    output = ingest("eval", "retrieval", *own_set).stdout.splitlines()

    assert "1 of 2 queries have no relevant document and are skipped." in output
    assert any(line.startswith(f"Tables: {ingest.home}/state/evaluation/files-") for line in output)


@pytest.mark.graph
def test_a_document_that_left_the_set_is_not_counted(ingest: Command, own_set: tuple[object, ...]):
    """The second evaluation covers only current documents."""
    documents = Path(str(own_set[-1])) / "documents"
    ingest("eval", "retrieval", *own_set)
    others = [path for path in documents.iterdir() if path.name != "swarm.md"]
    for path in others:
        path.unlink()

    output = ingest("eval", "retrieval", *own_set).stdout

    assert others
    assert "files: 1 of 1 documents are searchable" in output


@pytest.mark.graph
def test_a_folder_that_is_not_kept_is_not_named(ingest: Command, own_set: tuple[object, ...], tmp_path: Path):
    """Neither in text nor in JSON."""
    output = tmp_path / "report.json"

    said = ingest("eval", "retrieval", *own_set, "--no-keep", "--output", output).stdout

    assert "Tables:" not in said
    assert "home" not in json.loads(output.read_text())
    assert not list((ingest.home / "state" / "evaluation").glob("files*"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--set", "cranfield"), "--path: required; set it to the folder of the labelled set."),
        (("--set", "files", "--path", "nowhere"), "nowhere: not a folder"),
        (("--path", "."), "not allowed with --set samples"),
        (("--at-least", "dense.mrr@3=1"), "there is no 'mrr@3'"),
        (("--output", "no/such/place.json"), "its folder does not exist"),
    ],
)
def test_wrong_usage_is_one_line_and_starts_nothing(ingest: Command, options: tuple[str, ...], said: str):
    """Exit code 2, before any document is ingested."""
    done = ingest("eval", "retrieval", *options, check=2)

    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert not (ingest.home / "state").exists()


def test_an_error_in_a_set_is_one_line_with_file_and_line(ingest: Command, own_set: tuple[object, ...]):
    """Exit code 2, before any document is ingested."""
    queries = Path(str(own_set[-1])) / "queries.jsonl"
    queries.write_text('{"id": 1, "text": "When is May?"}\n["id", "text"]\n')

    (line,) = ingest("eval", "retrieval", *own_set, check=2).stderr.strip().splitlines()

    assert f"{queries}: line 2" in line
    assert not (ingest.home / "state").exists()
