"""`ingest watch`: folders come and go, and their documents with them."""

from pathlib import Path

import pytest

from ingest_tests.conftest import Command, write_notes

INLINE = '[execution]\nrun_on = "inline"\n'


@pytest.mark.graph
def test_documents_of_a_removed_folder_leave_the_tables_and_come_back(
    ingested: Command, ingested_notes: Path
):
    """Nothing is computed for that, and the files stay."""
    (watched,) = ingested.json("watch", "list")
    removed = ingested.json("watch", "remove", watched["name"])
    gone = ingested.json("all")
    status = ingested("status").stdout
    back = ingested.json("all", "--input", ingested_notes)

    assert watched == {"name": watched["name"], "path": str(ingested_notes), "added_by": "command"}
    assert removed["documents_to_remove"] == 3
    assert (gone["documents"], gone["chunks"], gone["exit_code"]) == (0, 0, 0)
    assert "watches no folder" in status
    assert (back["documents"], back["scan"]["restored"]) == (3, 3)
    assert len(list(ingested_notes.iterdir())) == 3


@pytest.mark.graph
def test_documents_of_a_removed_folder_can_be_kept(ingested: Command):
    """As for a source that is removed from the settings; they can also be removed later."""
    (watched,) = ingested.json("watch", "list")

    said = ingested("watch", "remove", watched["name"], "--keep-documents").stdout
    kept = ingested.json("all")
    later = ingested.json("watch", "remove", watched["name"])

    assert said == f"{watched['name']} is no longer watched.\n"
    assert ingested.json("watch", "list") == []
    assert kept["documents"] == later["documents_to_remove"] == 3


def test_a_folder_is_added_without_a_run(ingest: Command, notes: Path):
    """And a folder that was removed does not block the one above it."""
    said = ingest("watch", "add", notes).stdout
    (watched,) = ingest.json("watch", "list")
    ingest("watch", "remove", watched["name"])
    parent = ingest.json("watch", "add", notes.parent)

    assert said == f"Watching {notes} as {watched['name']}.\n"
    assert [source["path"] for source in ingest.json("watch", "list")] == [parent["path"]]
    assert ingest.json("status")["known_documents"] == 0


def test_folders_of_the_settings_are_removed_there(ingest: Command, tmp_path: Path):
    """The command names the section."""
    folder = write_notes(tmp_path / "papers")
    (ingest.home / "ingest.toml").write_text(f'{INLINE}[sources.papers]\npath = "{folder}"\n')
    ingest("watch", "list")

    refused = ingest("watch", "remove", "papers", check=2).stderr
    unknown = ingest("watch", "remove", "reports", check=2).stderr

    assert "remove [sources.papers] there." in refused
    assert "No watched folder 'reports'; `ingest watch list` shows them." in unknown
    assert [source["added_by"] for source in ingest.json("watch", "list")] == ["settings"]


def test_a_missing_folder_names_the_command_that_removes_it(ingest: Command, notes: Path, tmp_path: Path):
    """Otherwise each run would end with exit code 1."""
    ingest("watch", "add", notes)
    notes.rename(tmp_path / "elsewhere")

    (problem,) = ingest.json("plan")["problems"]

    assert problem["reason"].endswith(
        f"its documents are kept. `ingest watch remove {notes.name}` stops watching it and removes them"
    )
