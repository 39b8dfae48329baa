"""The sensor and the schedule on a real instance and ledger."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.defs_state.base import set_defs_state_storage

from ingest_assets.app.graph import stages_between
from ingest_assets.app.home import Home
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.resources import HomeResource
from ingest_tests.conftest import write_notes
from ingest_tests.runs import run_batches

ALL = stages_between("documents", "embeddings")


def _definitions() -> dg.Definitions:
    """Return the definitions, resolved independently of instances of earlier test contexts."""
    with set_defs_state_storage(None):
        definitions = build_definitions()
        definitions.get_repository_def()
        return definitions


def _look(instance: dg.DagsterInstance, cursor: str | None = None):
    sensor = _definitions().resolve_sensor_def("watched_folders")
    with dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"home": HomeResource()}
    ) as context:
        return sensor(context)


def _night(instance: dg.DagsterInstance):
    schedule = _definitions().resolve_schedule_def("finish_incomplete_batches")
    with dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=datetime(2026, 1, 2, 2, tzinfo=UTC),
        resources={"home": HomeResource()},
    ) as context:
        return schedule(context)


def test_without_folders_the_sensor_says_how_to_add_one(home: Home, instance: dg.DagsterInstance):
    """A skip needs a reason."""
    result = _look(instance)

    assert not result.run_requests
    assert "ingest all --input FOLDER" in result.skip_reason.skip_message


def test_new_files_make_a_batch_a_partition_and_a_request(
    home: Home, instance: dg.DagsterInstance, watched: Path, monkeypatch
):
    """Each exactly once: the cursor has the revision, and stays small."""
    monkeypatch.setenv("INGEST_AUTOMATION__SETTLE_SECONDS", "0")

    first = _look(instance)
    second = _look(instance, first.cursor)

    (request,) = first.run_requests
    (partitions,) = first.dynamic_partitions_requests
    assert partitions.partition_keys == [request.partition_key]
    assert request.tags["ingest/batch"] == request.partition_key
    assert (request.tags["ingest/source"], request.tags["ingest/reason"]) == ("notes", "changed")
    assert not second.run_requests
    assert second.skip_reason.skip_message.startswith("No file is new or changed at ")
    assert "3 files checked" in second.skip_reason.skip_message


def test_a_file_that_changes_back_is_requested_again(
    home: Home, instance: dg.DagsterInstance, watched: Path, monkeypatch
):
    """A run key made from content would repeat, and Dagster would drop the run."""
    monkeypatch.setenv("INGEST_AUTOMATION__SETTLE_SECONDS", "0")
    keys, cursor = [], None
    for text in ("one", "two", "one"):
        (watched / "swarm.md").write_text(f"# Swarms\n\n{text}\n")
        result = _look(instance, cursor)
        cursor = result.cursor
        keys += [request.run_key for request in result.run_requests]

    assert len(set(keys)) == len(keys) == 3


def test_a_batch_that_the_command_line_completed_is_not_requested(
    home: Home, instance: dg.DagsterInstance, watched: Path
):
    """It has nothing to do; after a deletion it has."""
    home.scan()
    run_batches(home, ALL, {}, reason="test")

    quiet = _look(instance)
    (watched / "swarm.md").unlink()
    after = _look(instance, quiet.cursor)

    assert not quiet.run_requests
    assert len(after.run_requests) == 1


@pytest.mark.graph
def test_the_schedule_requests_only_incomplete_batches(
    home: Home, instance: dg.DagsterInstance, watched: Path
):
    """By the predicate that resume and the checks use."""
    home.scan()
    run_batches(home, stages_between("documents", "doctags"), {}, reason="test")

    half = _night(instance)
    run_batches(home, ALL, {}, reason="test")
    done = _night(instance)

    assert [request.partition_key for request in half] == list(home.ledger.batches())
    assert isinstance(done, dg.SkipReason)
    assert done.skip_message == "All 1 batches are complete."


def test_a_missing_folder_deletes_nothing_and_is_reported(
    home: Home, instance: dg.DagsterInstance, watched: Path, tmp_path: Path
):
    """A drive that is not mounted must not empty the corpus."""
    home.scan()
    watched.rename(tmp_path / "elsewhere")

    result = _look(instance, str(max(home.ledger.batches().values())))

    assert not result.run_requests
    assert "folder does not exist" in result.skip_reason.skip_message
    assert not any(document.is_deleted() for document in home.ledger.documents())


def test_files_that_are_being_written_wait(
    home: Home, instance: dg.DagsterInstance, watched: Path, monkeypatch
):
    """A half-copied file would be ingested twice."""
    monkeypatch.setenv("INGEST_AUTOMATION__SETTLE_SECONDS", "3600")
    write_notes(watched)

    result = _look(instance)

    assert "3 files are still being written" in result.skip_reason.skip_message
