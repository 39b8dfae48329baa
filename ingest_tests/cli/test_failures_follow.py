"""The failure list follows its documents: new, fixed, deleted, with more time, or none at all."""

import time
from pathlib import Path

import pytest

from ingest_assets.app.home import open_home
from ingest_assets.cli.output import failure_lines
from ingest_assets.intake.queue.artifacts import Ending, Failure, NewArtifact
from ingest_tests.cli.failing import PAGES
from ingest_tests.conftest import Command
from ingest_tests.intake.queue.ends import ack
from ingest_tests.parsing.documents import pdf

pytestmark = pytest.mark.graph  # runs the whole graph many times


def test_a_home_without_failures_says_so(ingest: Command, notes: Path):
    """Also one in which nothing has run."""
    empty = ingest("failures", "list").stdout
    ingest("doctags", "--input", notes)

    assert empty == ingest("failures", "list").stdout == "No failures.\n"
    assert ingest("failures", "retry", "--all").stdout == "No failure matches; nothing was run.\n"
    assert ingest("failures", "release", "--all").stdout == "No failure matches; nothing was released.\n"


def test_an_artifact_that_failed_after_the_last_run_is_in_the_inbox(ingest: Command):
    """The queue has it before any table does."""
    home = open_home(ingest.home)
    home.queue.enqueue([NewArtifact(id="paper", url="http://example.org/p.pdf")], time.time())
    (batch,) = home.assign_batches()
    (lease,) = home.queue.lease("somebody", 1, time.time(), batch=batch)
    why = Failure("provider", "E_FETCH_REFUSED", "example.org says 403.", retryable=False)
    ack(home.queue, lease.token, Ending("error", failure=why), time.time())

    (failure,) = ingest.json("failures", "list", "--batch", batch)["failures"]

    assert (failure["doc_id"], failure["code"], failure["attempts"]) == ("paper", "E_FETCH_REFUSED", 1)
    assert failure["file"] == "http://example.org/p.pdf"
    assert failure["failed_at"].startswith("20")


def test_a_retry_reads_fixed_files_and_drops_deleted_ones(ingest: Command, notes: Path):
    """A retry scans the folders first."""
    for name in ("empty.md", "useless.md"):
        (notes / name).touch()
    ingest("all", "--input", notes, check=1)
    (notes / "empty.md").write_text("# Repaired\n\nNow there is something in it.\n")
    (notes / "useless.md").unlink()

    result = ingest.json("failures", "retry", "--all")

    assert {r["doc_id"]: r["became"] for r in result["retried"]} == {
        "notes:empty.md": "done",
        "notes:useless.md": "gone",
    }
    assert ingest.json("failures", "list")["count"] == 0


def test_a_deleted_document_is_in_no_inbox(ingest: Command, notes: Path):
    """Even before the run that removes its rows."""
    (notes / "empty.md").touch()
    ingest("doctags", "--input", notes, check=1)
    (notes / "empty.md").unlink()
    open_home(ingest.home).scan()

    assert ingest.json("failures", "list")["failures"] == []
    assert ingest.json("status")["failures"] == []


def test_a_retry_can_raise_the_timeout(ingest: Command, notes: Path):
    """For one retry, without changing the settings."""
    (notes / "long.pdf").write_bytes(pdf(PAGES))
    limits = {"INGEST_STAGES__DOCTAGS__PER_ITEM_TIMEOUT_S": "0.001", "INGEST_STAGES__DOCTAGS__RETRIES": "0"}
    ingest("all", "--input", notes, check=1, **limits)
    result = ingest.json("failures", "list", "--category", "timeout")["failures"]

    ingest("failures", "retry", "long.pdf", "--timeout-s", 120, **limits)

    assert {failure["code"] for failure in result} == {"E_TIMEOUT"}
    left = {f["doc_id"]: f["attempts"] for f in ingest.json("failures", "list")["failures"]}
    assert left == {f["doc_id"]: f["attempts"] for f in result if f["doc_id"] != "notes:long.pdf"}


def test_more_than_twenty_failures_are_counted_and_the_inbox_is_named():
    """The rest is counted in one line."""
    found = [{"doc_id": f"d{n}", "stage": "doctags", "code": "E", "message": f"{n} fails"} for n in range(22)]

    assert failure_lines(found)[19:] == [
        "failed: d19 [doctags E] 19 fails",
        "… and 2 more: ingest failures list",
    ]
    assert failure_lines(found[:20])[-1] == "failed: d19 [doctags E] 19 fails"
