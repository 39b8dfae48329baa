"""A rerun costs only what changed, and the same input gives the same bytes."""

from pathlib import Path

import polars as pl
import pytest

from ingest_tests.conftest import NOTES, Command, write_notes

STAGES = ["documents", "doctags", "admission", "chunks", "dense", "lexical"]


def _done(result: dict) -> dict[str, int]:
    return {stage: totals["succeeded"] for stage, totals in result["stages"].items()}


def _documents_in(home: Path, asset: str) -> set[str]:
    return set(pl.read_parquet(home / "data" / asset / "*.parquet")["doc_id"])


def test_a_second_run_computes_nothing_and_touches_no_byte(ingest: Command, notes: Path):
    """The broken document is remembered too: trying it again would cost and change nothing."""
    (notes / "broken.pdf").write_bytes(b"%PDF-1.7\ncut off")
    first = ingest.json("all", "--input", notes, check=1)
    before = ingest.hashes()

    second = ingest.json("all", check=1)

    assert _done(first) == {"documents": 4} | dict.fromkeys(STAGES[1:], 3)
    assert all(totals["scheduled"] == 0 for totals in second["stages"].values())
    assert {stage: totals["skipped"] for stage, totals in second["stages"].items()} == {
        "documents": 4,
        "doctags": 4,
        "admission": 3,
        "chunks": 3,
        "dense": 3,
        "lexical": 3,
    }
    assert [failure["code"] for failure in second["failures"]] == ["E_PARSE_CORRUPT"]
    assert ingest.hashes() == before


def test_changing_one_file_recomputes_that_document_only(ingested: Command, ingested_notes: Path, new_home):
    """And the tables are those of a home that never saw the old file."""
    other = "# Swarms\n\nIn a warm spring a swarm may leave the hive as early as April.\n"
    (ingested_notes / "swarm.md").write_text(other, encoding="utf-8")

    changed = ingested.json("all")

    assert _done(changed) == dict.fromkeys(STAGES, 1)
    rebuilt = new_home("rebuilt")
    rebuilt("all", "--input", ingested_notes)
    assert ingested.hashes() == rebuilt.hashes()


def test_deleting_a_file_removes_its_rows_from_every_table(ingested: Command, ingested_notes: Path):
    """A deleted document must not be found any more."""
    (ingested_notes / "varroa.html").unlink()
    waiting = ingested.json("status")

    result = ingested.json("all")

    assert waiting["deleted_waiting_for_a_run"] == 1
    assert result["scan"]["deleted"] == 1
    assert _done(result) == dict.fromkeys(STAGES, 0)
    for asset in ("documents", "doctags", "admission", "chunks", "embeddings/dense", "embeddings/lexical"):
        assert _documents_in(ingested.home, asset) == {"notes:swarm.md", "notes:feeding.md"}


@pytest.mark.graph
def test_a_file_that_comes_back_returns_to_its_home_batch(ingested: Command, ingested_notes: Path):
    """A document keeps its batch for life."""
    before = ingested.hashes()
    (ingested_notes / "varroa.html").unlink()
    ingested("all")

    write_notes(ingested_notes)
    result = ingested.json("all")

    assert result["scan"]["restored"] == 1
    assert ingested.hashes() == before


@pytest.mark.graph
def test_new_chunk_size_recomputes_chunks_and_embeddings_and_leaves_doctags_alone(
    ingested: Command, ingested_notes: Path
):
    """Fingerprints chain: staleness flows down the graph and never up."""
    before = ingested.hashes()

    result = ingested.json("all", INGEST_CHUNKS__MAX_TOKENS="64")

    assert _done(result) == dict.fromkeys(STAGES[:3], 0) | dict.fromkeys(STAGES[3:], 3)
    after = ingested.hashes()
    unchanged = {path for path in before if before[path] == after[path]}
    assert {path.split("/")[0] for path in unchanged} == {"documents", "doctags", "admission"}
    changed = {path.split("/")[0] for path in set(before) - unchanged}
    assert changed == {"chunks", "embeddings", "lexical_stats"}


@pytest.mark.graph
def test_touching_a_file_without_changing_it_changes_nothing(ingested: Command, ingested_notes: Path):
    """Content decides, not the clock."""
    before = ingested.hashes()
    (ingested_notes / "swarm.md").write_text(NOTES["swarm.md"], encoding="utf-8")

    result = ingested.json("all")

    assert all(totals["scheduled"] == 0 for totals in result["stages"].values())
    assert ingested.hashes() == before


@pytest.mark.graph
def test_worker_count_and_policy_do_not_change_a_byte(ingest: Command, notes: Path, new_home):
    """The same input gives the same bytes whatever ran it."""
    ingest("all", "--input", notes, "--workers", 1)
    other = new_home("threads")

    other("all", "--input", notes, "--workers", 3, "--policy", "io")

    assert ingest.hashes() == other.hashes()


@pytest.mark.graph
def test_force_does_everything_again_and_keeps_what_it_replaces(ingested: Command, ingested_notes: Path):
    """Forcing must not lose the table it replaces."""
    before = ingested.hashes()

    result = ingested.json("chunk", "--from", "chunks", "--force")

    assert _done(result) == {"chunks": 3}
    assert ingested.hashes() == before
    kept = list((ingested.home / "state" / "quarantine" / "chunks").rglob("*.parquet"))
    assert len(kept) == 1
    assert pl.read_parquet(kept[0]).height == pl.read_parquet(ingested.home / "data/chunks/*.parquet").height
