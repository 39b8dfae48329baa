"""A rerun computes only what changed, and the same input gives the same bytes."""

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
    """The broken document is not retried either: that would change nothing."""
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
    """The tables equal those of a home that never had the old file."""
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
def test_a_restored_file_returns_to_its_batch(ingested: Command, ingested_notes: Path):
    """A document never changes its batch."""
    before = ingested.hashes()
    (ingested_notes / "varroa.html").unlink()
    ingested("all")

    write_notes(ingested_notes)
    result = ingested.json("all")

    assert result["scan"]["restored"] == 1
    assert ingested.hashes() == before


@pytest.mark.graph
def test_new_chunk_size_recomputes_chunks_and_embeddings_but_not_doctags(
    ingested: Command, ingested_notes: Path
):
    """Fingerprints form a chain: changes affect only the stages below."""
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
    """Only the content counts."""
    before = ingested.hashes()
    (ingested_notes / "swarm.md").write_text(NOTES["swarm.md"], encoding="utf-8")

    result = ingested.json("all")

    assert all(totals["scheduled"] == 0 for totals in result["stages"].values())
    assert ingested.hashes() == before


@pytest.mark.graph
def test_worker_count_and_policy_do_not_change_a_byte(ingest: Command, notes: Path, new_home):
    """Whatever ran the documents."""
    ingest("all", "--input", notes, "--workers", 1)
    other = new_home("threads")

    other("all", "--input", notes, "--workers", 3, "--policy", "io")

    assert ingest.hashes() == other.hashes()


@pytest.mark.graph
def test_force_recomputes_everything_and_keeps_the_old_tables(ingested: Command, ingested_notes: Path):
    """The replaced tables go to quarantine."""
    before = ingested.hashes()

    result = ingested.json("chunk", "--from", "chunks", "--force")

    assert _done(result) == {"chunks": 3}
    assert ingested.hashes() == before
    kept = list((ingested.home / "state" / "quarantine" / "chunks").rglob("*.parquet"))
    assert len(kept) == 1
    assert pl.read_parquet(kept[0]).height == pl.read_parquet(ingested.home / "data/chunks/*.parquet").height
