"""A stage that its error budget stops: one clear reason, all numbers, and finished work is kept."""

from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from ingest_assets.app.home import open_home
from ingest_assets.defs.instance import open_instance
from ingest_tests.conftest import NOTES, Command
from ingest_tests.end_to_end.leftovers import attempts, outputs, staged

BROKEN = ["broken-1.pdf", "broken-2.pdf", "broken-3.pdf"]
COUNTS = ("scheduled", "skipped", "succeeded", "failed", "cancelled")


@pytest.fixture
def mixed(notes: Path) -> Path:
    """Three good documents and three that only begin like PDF files; names decide their order."""
    (notes / "a.md").write_text("# First\n\nRead before anything breaks.\n", encoding="utf-8")
    for name in BROKEN:
        (notes / name).write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 4)
    return notes


def _of_the_step(command: Command, step: str) -> tuple[str, dict[str, Any]]:
    """Return the metadata of the last run's failed step."""
    with open_instance(open_home(command.home).layout) as instance:
        (run, *_) = instance.get_runs(limit=1)
        records = instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records
    (event,) = [record.event_log_entry.dagster_event for record in records]
    assert event.step_key == step
    failure = event.step_failure_data.user_failure_data
    return failure.description, {name: value.value for name, value in failure.metadata.items()}


@pytest.mark.parametrize("budget", [0, 1])
def test_an_exceeded_budget_stops_the_stage_and_all_report_the_same_numbers(
    ingest: Command, mixed: Path, budget: int
):
    """The outcome, the manifest, Dagster and the command agree."""
    result = ingest.json("all", "--input", mixed, "--error-budget", budget, "--workers", 1, check=1)

    (reason,) = result["broken_batches"].values()
    totals = result["stages"]["doctags"]
    description, metadata = _of_the_step(ingest, "doctags")
    rows = attempts(ingest)
    finished = totals["succeeded"] + totals["failed"]
    assert (
        reason
        == description
        == (
            f"doctags stopped after {budget + 1} of {finished} finished items failed: the error budget is "
            f"{budget} (error_budget). Finished documents are kept. Run again to continue."
        )
    )
    assert totals["failed"] == budget + 1
    assert totals["cancelled"] >= 1
    assert totals["scheduled"] == totals["succeeded"] + totals["failed"] + totals["cancelled"]
    assert {name: metadata[name] for name in COUNTS} == {name: totals[name] for name in COUNTS}
    assert Counter(row.status for row in rows) == Counter(
        done=totals["succeeded"], failed=totals["failed"], cancelled=totals["cancelled"]
    )
    assert [error["item_id"] for error in metadata["errors"]] == [
        each["doc_id"] for each in result["failures"]
    ]
    assert len(result["failures"]) == budget + 1
    assert all(set(each.values()) == {0} for each in _later(result))
    assert outputs(rows) == staged(ingest)


def _later(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the stages that were not reached."""
    return [result["stages"][stage] for stage in ("chunks", "dense", "lexical")]


@pytest.mark.graph
def test_a_run_with_a_larger_budget_computes_only_what_is_missing(ingest: Command, mixed: Path, new_home):
    """Finished documents are not read again, and no byte differs from a run without a budget."""
    ingest("all", "--input", mixed, "--error-budget", 0, "--workers", 1, check=1)
    first, finished = attempts(ingest), staged(ingest)

    result = ingest.json("all", "--error-budget", len(BROKEN), check=1)

    assert len(finished) >= 1
    assert outputs(attempts(ingest)[len(first) :]).isdisjoint(finished)
    assert not result["broken_batches"]
    assert result["converted"] == len(NOTES) + 1
    assert result["stages"]["doctags"]["skipped"] == len(finished)
    assert {failure["doc_id"].split(":")[1] for failure in result["failures"]} == set(BROKEN)
    whole = new_home("without a budget")
    whole("all", "--input", mixed, check=1)
    assert ingest.hashes() == whole.hashes()


def test_the_output_has_the_reason_once_and_every_failure(ingest: Command, mixed: Path):
    """Exit code 1, equal failures in one line, and why the batch is not complete."""
    stopped = ingest("doctags", "--input", mixed, "--error-budget", 1, "--workers", 1, check=1)

    lines = stopped.stderr.splitlines()
    assert sum("the error budget is 1" in line and line.startswith("batch ") for line in lines) == 1
    (failed,) = [line for line in lines if line.startswith("failed: ")]
    assert failed.startswith("failed: 2 documents (")
    assert sum(name in failed for name in BROKEN) == 2
    (row,) = [line.split() for line in stopped.stdout.splitlines() if line.startswith("doctags ")]
    assert row[3] == "2"
    assert int(row[5]) >= 1
