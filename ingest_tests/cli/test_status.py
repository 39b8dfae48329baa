"""What `ingest status` says of documents that come and go."""

from pathlib import Path

from ingest_tests.conftest import Command


def test_a_deleted_file_waits_for_a_run_before_and_after_it_is_missed(
    ingested: Command, ingested_notes: Path
):
    """Whether a scan has noticed it or not, its rows are still there and leave with the next run."""
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


def test_the_words_tell_the_gone_from_the_noticed(ingested: Command, ingested_notes: Path):
    """And where to see what a run would do."""
    (ingested_notes / "swarm.md").unlink()
    (ingested_notes / "new.md").write_text("# New\n")

    text = ingested("status").stdout

    assert "1 new, 0 changed, 0 moved, 1 deleted" in text
    assert "`ingest plan` says" in text
    assert "1 file is gone from its folder and leaves the tables with the next run." in text
    ingested("all", "--from", "chunks", "--until", "chunks", check=None)
    assert "1 deleted document still has rows, which leave the tables with" in ingested("status").stdout


def test_a_moved_file_is_not_taken_for_gone(ingested: Command, ingested_notes: Path):
    """Not before a scan has noticed it and not after."""
    (ingested_notes / "swarm.md").rename(ingested_notes / "bees.md")

    before = ingested.json("status")
    ingested("all", "--from", "chunks", "--until", "chunks")
    noticed = ingested.json("status")

    assert before["folders"]["moved"] == 1
    assert [each["deleted_waiting_for_a_run"] for each in (before, noticed)] == [0, 0]


def test_a_folder_that_is_not_there_is_said_at_once(ingested: Command, ingested_notes: Path):
    """Its documents are kept, so none is said to leave."""
    ingested_notes.rename(ingested_notes.with_name("unmounted"))

    result = ingested.json("status")

    assert result["deleted_waiting_for_a_run"] == 0
    assert "folder is not there" in result["problems"][0]["reason"]


def test_a_quiet_home_says_nothing_of_its_folders(ingested: Command):
    """No news is no line."""
    text = ingested("status").stdout

    assert "Folders:" not in text
    assert "leave" not in text
