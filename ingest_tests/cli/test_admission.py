"""Verdicts as the user sees them: in `ingest all`, `ingest inspect` and `ingest status`."""

from pathlib import Path

import polars as pl
import pytest

from ingest_tests.conftest import Command

STORY = """# The winter of the bees

In November the colonies draw together into a cluster and stop flying. They eat what the summer left,
and anybody who opens a hive now costs them a week of warmth. A keeper listens at the wall instead.

In January the queen begins to lay again, long before the first willow flowers. From now on a colony needs
twice as much food as before, and most of those that starve do so in March and not in winter.
"""
FIRST, LAST = "a-story.md", "z-story.md"
NEAR = {
    "INGEST_ADMISSION__NEAR_DUPLICATES__ENABLED": "true",
    "INGEST_ADMISSION__NEAR_DUPLICATES__THRESHOLD": "0.8",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A story, its copy in another file format, an edited version, and two documents that are rejected."""
    folder = tmp_path / "stories"
    folder.mkdir()
    (folder / FIRST).write_text(STORY)
    title, *paragraphs = STORY.removeprefix("# ").split("\n\n")
    body = "".join(f"<p>{' '.join(text.split())}</p>" for text in paragraphs)
    (folder / "copy.html").write_text(f"<html><body><h1>{title}</h1>{body}</body></html>")
    (folder / LAST).write_text(STORY.replace("willow flowers", "willows flower"))
    (folder / "login.html").write_text(
        "<html><body><h1>Sign in</h1><p>Please enter your user name and your password to continue.</p>"
        "<p>Forgot your password? Create an account.</p></body></html>"
    )
    (folder / "scrap.md").write_text("# Notes\n\nTo do.\n")
    return folder


def verdicts(command: Command) -> dict[str, tuple[str, str | None]]:
    """Return each document's reason, or its tier, and the document it duplicates."""
    rows = pl.read_parquet(command.home / "data/admission/*.parquet").iter_rows(named=True)
    return {
        row["doc_id"].removeprefix("stories:"): (
            row["reject_reason"] or row["tier"],
            row["duplicate_of"] or row["near_duplicate_of"],
        )
        for row in rows
    }


def chunked(command: Command) -> set[str]:
    """Return the documents that a search can find."""
    return set(pl.read_parquet(command.home / "data/chunks/*.parquet")["doc_id"])


def test_rejected_documents_are_explained_and_not_chunked(ingest: Command, folder: Path):
    """An exact copy is rejected in any file format; near copies are kept by default."""
    result = ingest.json("all", "--input", folder)

    assert (result["admitted"], result["rejected"]) == (2, 3)
    assert verdicts(ingest) == {
        FIRST: ("TIER0", None),
        "copy.html": ("duplicate", f"stories:{FIRST}"),
        LAST: ("TIER0", None),
        "login.html": ("login_page", None),
        "scrap.md": ("too_short", None),
    }
    assert chunked(ingest) == {f"stories:{FIRST}", f"stories:{LAST}"}
    assert f"rejected at doc_dedup: duplicate of stories:{FIRST}" in ingest("inspect", "copy.html").stdout
    assert "rejected at fast_filter: too_short (9, limit 100)" in ingest("inspect", "scrap.md").stdout
    assert "rejected at structural_filter: login_page (" in ingest("inspect", "login.html").stdout
    assert "  admitted as TIER0\n" in ingest("inspect", FIRST).stdout
    said = ingest("status").stdout
    assert "2 documents admitted, 3 rejected: " in said
    assert "structural_filter: login_page (1)" in said
    assert ingest.json("status")["rejections"]["fast_filter: too_short"] == 1
    assert "stories:scrap.md  rejected: too_short\n" in ingest("status", "--documents").stdout


@pytest.mark.graph
def test_near_copies_are_rejected_if_the_settings_say_so(ingest: Command, folder: Path):
    """The verdict has the similarity; without the setting they are admitted again."""
    ingest("all", "--input", folder, **NEAR)
    output = ingest("inspect", LAST, **NEAR).stdout
    minded = verdicts(ingest)
    ingest("all")

    assert minded[LAST] == ("near_duplicate", f"stories:{FIRST}")
    assert f"rejected at doc_dedup: near_duplicate of stories:{FIRST}, similarity 0.8" in output
    assert verdicts(ingest)[LAST] == ("TIER0", None)
    assert f"stories:{LAST}" in chunked(ingest)


@pytest.mark.graph
def test_when_the_first_goes_or_changes_its_copies_take_its_place(ingest: Command, folder: Path):
    """In one command, also for copies in another batch."""
    more = {"INGEST_BATCHES__MAX_DOCUMENTS": "2", **NEAR}
    ingest("all", "--input", folder, **more)
    (folder / FIRST).unlink()
    ingest("all", **more)
    without = verdicts(ingest)
    (folder / FIRST).write_text(STORY)
    ingest("all", **more)

    assert (without["copy.html"], without[LAST]) == (("TIER0", None), ("near_duplicate", "stories:copy.html"))
    assert verdicts(ingest)["copy.html"] == ("duplicate", f"stories:{FIRST}")
    assert verdicts(ingest)[LAST] == ("near_duplicate", f"stories:{FIRST}")
    assert chunked(ingest) == {f"stories:{FIRST}"}
    assert ingest.json("all", **more)["batches"]["ran"] == []
