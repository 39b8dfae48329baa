"""A moved file is not converted again, and the tables end up as if it had always been there."""

from pathlib import Path

import polars as pl
import pytest

from ingest_tests.conftest import Command
from ingest_tests.parsing.documents import pdf

pytestmark = pytest.mark.graph  # runs the whole graph many times

ASSETS = ("documents", "doctags", "admission", "chunks", "embeddings/dense", "embeddings/lexical")
# A limit rejects documents when they are converted and makes no row stale, so conversions show as failures.
NO_CONVERSION = {"INGEST_PARSING__MAX_PAGES": "1"}


def _write_handbook(path: Path) -> None:
    """Write two pages of text."""
    page = [(72, 760 - 14 * at, 11, f"Line {at} of the handbook, on swarms and stores.") for at in range(30)]
    path.write_bytes(pdf([page, page[:5]]))


def _tables(command: Command) -> dict[str, pl.DataFrame]:
    """Return every table without batches and numbers, which depend on a document's history."""
    frames = {asset: pl.read_parquet(command.home / "data" / asset / "*.parquet") for asset in ASSETS}
    return {
        asset: frame.drop("batch", "seq", strict=False).sort(
            [name for name in ("doc_id", "ordinal") if name in frame.columns]
        )
        for asset, frame in frames.items()
    }


def _homes(command: Command) -> dict[str, tuple[str, int]]:
    frame = pl.read_parquet(command.home / "data" / "documents" / "*.parquet")
    return {row["doc_id"]: (row["batch"], row["seq"]) for row in frame.iter_rows(named=True)}


def test_a_moved_document_is_not_converted_again(ingest: Command, notes: Path, new_home):
    """The tables equal those of a home that never had it elsewhere, except for batch and number."""
    _write_handbook(notes / "handbook.pdf")
    ingest("all", "--input", notes)
    before = _homes(ingest)
    (notes / "archive").mkdir()
    (notes / "handbook.pdf").rename(notes / "archive" / "the handbook.pdf")

    planned = ingest.json("plan")
    result = ingest.json("all", **NO_CONVERSION)

    assert planned["scan"] == result["scan"]
    assert {name: count for name, count in result["scan"].items() if count} == {"moved": 1, "unchanged": 3}
    assert {stage: totals["succeeded"] for stage, totals in result["stages"].items()} == dict.fromkeys(
        ("documents", "doctags", "admission", "chunks", "dense", "lexical"), 1
    )
    assert result["failures"] == []
    assert _homes(ingest)["notes:archive/the handbook.pdf"] == before["notes:handbook.pdf"]
    rebuilt = new_home("rebuilt")
    rebuilt("all", "--input", notes)
    for (asset, found), expected in zip(_tables(ingest).items(), _tables(rebuilt).values(), strict=True):
        assert found.equals(expected), asset


def test_force_converts_a_moved_document_again(ingest: Command, notes: Path):
    """A forced run reuses nothing that is stored."""
    _write_handbook(notes / "handbook.pdf")
    ingest("doctags", "--input", notes)
    (notes / "handbook.pdf").rename(notes / "moved.pdf")

    result = ingest.json("doctags", "--force", check=1, **NO_CONVERSION)

    assert [(failure["doc_id"], failure["code"]) for failure in result["failures"]] == [
        ("notes:moved.pdf", "E_SECURITY_TOO_MANY_PAGES")
    ]
