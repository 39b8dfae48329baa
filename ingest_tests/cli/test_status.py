"""What `ingest status` says of documents that come and go."""

import shutil
from pathlib import Path

import pytest

from ingest_tests.conftest import Command, write_notes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three notes, as far as the verdicts, made once."""
    root = tmp_path_factory.mktemp("status") / "now"
    (root / "home").mkdir(parents=True)
    (root / "home" / "ingest.toml").write_text('[execution]\nrun_on = "inline"\n')
    Command(root / "home")("all", "--until", "admission", "--input", write_notes(root / "notes"))
    shutil.copytree(root, root.parent / "then")
    return root


@pytest.fixture
def home(made: Path) -> Command:
    """The command on that home; at the same place for every test, as a home knows where its files are."""
    shutil.rmtree(made)
    shutil.copytree(made.parent / "then", made)
    return Command(made / "home")


def test_a_deleted_file_waits_for_a_run_before_and_after_it_is_missed(home: Command, made: Path):
    """Whether a scan has noticed it or not, its rows are still there and leave with the next run."""
    (made / "notes" / "swarm.md").unlink()
    before = home.json("status")
    home("all", "--from", "chunks", "--until", "chunks")
    noticed = home.json("status")
    home("doctags")
    left = home.json("status")

    assert (before["deleted_waiting_for_a_run"], before["gone_from_folders"]) == (1, 1)
    assert (noticed["deleted_waiting_for_a_run"], noticed["gone_from_folders"]) == (1, 0)
    assert (before["known_documents"], noticed["known_documents"]) == (3, 2)
    assert left["deleted_waiting_for_a_run"] == 1, "the chunks were made before"


def test_the_words_tell_the_gone_from_the_noticed(home: Command, made: Path):
    """And where to see what a run would do."""
    (made / "notes" / "swarm.md").unlink()
    (made / "notes" / "new.md").write_text("# New\n")

    text = home("status").stdout

    assert "1 new, 0 changed, 0 moved, 1 deleted" in text
    assert "`ingest plan` says" in text
    assert "1 file is gone from its folder and leaves the tables with the next run." in text
    home("all", "--from", "chunks", "--until", "chunks", check=None)
    assert "1 deleted document still has rows, which leave the tables with" in home("status").stdout


def test_a_moved_file_is_not_taken_for_gone(home: Command, made: Path):
    """Not before a scan has noticed it and not after."""
    (made / "notes" / "swarm.md").rename(made / "notes" / "bees.md")

    before = home.json("status")
    home("all", "--from", "chunks", "--until", "chunks")
    noticed = home.json("status")

    assert before["folders"]["moved"] == 1
    assert [each["deleted_waiting_for_a_run"] for each in (before, noticed)] == [0, 0]


def test_a_folder_that_is_not_there_is_said_at_once(home: Command, made: Path):
    """Its documents are kept, so none is said to leave."""
    (made / "notes").rename(made / "unmounted")

    result = home.json("status")

    assert result["deleted_waiting_for_a_run"] == 0
    assert "folder is not there" in result["problems"][0]["reason"]


def test_a_quiet_home_says_nothing_of_its_folders(home: Command):
    """No news is no line."""
    text = home("status").stdout

    assert "Folders:" not in text
    assert "leave" not in text
