"""How `ingest status` reports changed and deleted documents."""

from pathlib import Path

from ingest_tests.conftest import Command


def test_a_deleted_file_waits_for_a_run_before_and_after_a_scan_notices(
    ingested: Command, ingested_notes: Path
):
    """Its rows still exist and are removed by the next run."""
    (ingested_notes / "swarm.md").unlink()
    before = ingested.json("status")
    ingested("all", "--from", "chunks", "--until", "chunks")
    noticed = ingested.json("status")
    ingested("doctags")
    left = ingested.json("status")

    assert (before["deleted_waiting_for_a_run"], before["gone_from_folders"]) == (1, 1)
    assert (noticed["deleted_waiting_for_a_run"], noticed["gone_from_folders"]) == (1, 0)
    assert (before["known_documents"], noticed["known_documents"]) == (3, 2)
    assert left["deleted_waiting_for_a_run"] == 1, "the chunks were made before"


def test_the_text_distinguishes_unnoticed_deletions(ingested: Command, ingested_notes: Path):
    """And names the command that shows what a run would do."""
    (ingested_notes / "swarm.md").unlink()
    (ingested_notes / "new.md").write_text("# New\n")

    text = ingested("status").stdout

    assert "1 new, 0 changed, 0 moved, 1 deleted" in text
    assert "`ingest plan` shows" in text
    assert "1 file was deleted; the next run updates the tables." in text
    ingested("all", "--from", "chunks", "--until", "chunks", check=None)
    assert "1 deleted document still has rows; the next run removes them." in ingested("status").stdout


def test_a_moved_file_is_not_counted_as_deleted(ingested: Command, ingested_notes: Path):
    """Neither before a scan has noticed it nor after."""
    (ingested_notes / "swarm.md").rename(ingested_notes / "bees.md")

    before = ingested.json("status")
    ingested("all", "--from", "chunks", "--until", "chunks")
    noticed = ingested.json("status")

    assert before["folders"]["moved"] == 1
    assert [each["deleted_waiting_for_a_run"] for each in (before, noticed)] == [0, 0]


def test_a_missing_folder_is_reported_at_once(ingested: Command, ingested_notes: Path):
    """Its documents are kept, so none is counted as deleted."""
    ingested_notes.rename(ingested_notes.with_name("unmounted"))

    result = ingested.json("status")

    assert result["deleted_waiting_for_a_run"] == 0
    assert "folder does not exist" in result["problems"][0]["reason"]


def test_an_unchanged_home_has_no_line_about_its_folders(ingested: Command):
    """Only changes are printed."""
    text = ingested("status").stdout

    assert "Folders:" not in text
    assert "leave" not in text
