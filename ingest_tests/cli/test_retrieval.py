"""`ingest eval retrieval`: the shipped set through the product, as a gate that can fail."""

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ingest_tests.conftest import Command

GATES = ("dense.ndcg@10=0.80", "lexical.ndcg@10=0.55", "fused.ndcg@10=0.75", "fused.recall@10=0.95")


def _gated(ingest: Command, check: int) -> dict:
    options = [word for gate in GATES for word in ("--at-least", gate)]
    return ingest.json("eval", "retrieval", *options, check=check)


def test_the_shipped_set_is_found_and_broken_tables_are_found_out(ingest: Command):
    """What CI holds: meaning and words find what they should, and vectors of other chunks do not pass."""
    good = _gated(ingest, check=0)

    assert good["counts"]["searchable"] == good["counts"]["documents"] == 26
    assert all(gate["passed"] for gate in good["gates"])
    assert not (ingest.home / "data").exists()

    for family, columns in (("dense", ["vector"]), ("lexical", ["terms", "counts", "length"])):
        _shuffle(Path(good["home"]) / "data" / "embeddings" / family, columns)
    bad = _gated(ingest, check=1)

    assert not any(gate["passed"] for gate in bad["gates"][:3])


def _shuffle(folder: Path, columns: list[str]) -> None:
    """Give each chunk what belongs to another."""
    (path,) = folder.glob("*.parquet")
    table = pq.ParquetFile(path).read()
    order = list(range(table.num_rows))
    random.Random(7).shuffle(order)
    for name in columns:
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(name), table[name].take(order))
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--set", "cranfield"), "--path: give the folder of the set cranfield."),
        (("--set", "files", "--path", "nowhere"), "nowhere: is no folder"),
        (("--path", "."), "leave --path out"),
        (("--at-least", "dense.mrr@3=1"), "there is no 'mrr@3'"),
        (("--output", "no/such/place.json"), "cannot be written"),
    ],
)
def test_wrong_usage_is_one_line_and_starts_nothing(ingest: Command, options: tuple[str, ...], said: str):
    """Exit code 2, before any document is ingested."""
    done = ingest("eval", "retrieval", *options, check=2)

    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert not (ingest.home / "state").exists()
