"""A run that retries only the named failed documents, through Dagster."""

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from ingest_assets.app.driver import RunReport
from ingest_assets.app.graph import GRAPH, stages_between
from ingest_assets.app.home import Home, open_home
from ingest_assets.defs.assets import stage_asset
from ingest_assets.runner import read_manifest
from ingest_tests.parsing.documents import pdf
from ingest_tests.runs import run_batches

pytestmark = pytest.mark.graph  # runs the whole graph many times

STAGES = stages_between("documents", "chunks")
TEXT = "Page {} is about bees, their trees and what they find in summer."
PAGES = [[(72, 700 - 40 * n, 12, TEXT.format(n))] for n in range(3)]


@pytest.fixture
def failed(home: Home, watched: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Two documents with invalid bytes, two that a setting rejects, and three notes that are done."""
    monkeypatch.setenv("INGEST_PARSING__MAX_PAGES", "2")
    for name in ("bad-1.pdf", "bad-2.pdf"):
        (watched / name).write_bytes(b"%PDF-1.7\ncut off")
    for name in ("long-1.pdf", "long-2.pdf"):
        (watched / name).write_bytes(pdf(PAGES))
    opened = open_home(home.layout.home)
    opened.scan()
    run_batches(opened, STAGES, {}, reason="test")
    return opened


def _attempts(home: Home) -> Counter[str]:
    return Counter(row.item_id.split(":")[1] for row in read_manifest(home.layout.manifest("doctags")))


def _hashes(home: Home) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in home.layout.data.rglob("*.parquet")
    }


def _retry(home: Home, *names: str, config: dict | None = None) -> RunReport:
    (batch,) = home.ledger.batches()
    wanted = {batch: [f"notes:{name}" for name in names]}
    return run_batches(home, STAGES, config or {}, reason="test", retry=wanted)


def test_only_the_named_documents_are_retried(failed: Home):
    """Neither the other invalid document nor those with temporary errors; the tables do not change."""
    before, tables = _attempts(failed), _hashes(failed)

    report = _retry(failed, "bad-1.pdf")

    assert _attempts(failed) - before == Counter({"bad-1.pdf": 1})
    assert (report.stages["doctags"].scheduled, report.stages["doctags"].failed) == (1, 1)
    assert report.stages["documents"].scheduled == 0
    assert _hashes(failed) == tables


def test_an_ordinary_run_retries_all_but_invalid_documents(failed: Home):
    """The default rule, from which `retry` deviates."""
    before = _attempts(failed)

    run_batches(failed, STAGES, {}, reason="test")

    assert _attempts(failed) - before == Counter({"long-1.pdf": 1, "long-2.pdf": 1})


def test_a_fixed_document_continues_through_the_stages_below(failed: Home, monkeypatch: pytest.MonkeyPatch):
    """The others stay failed in the footer, in the same order."""
    monkeypatch.setenv("INGEST_PARSING__MAX_PAGES", "9")
    opened = open_home(failed.layout.home)

    report = _retry(opened, "long-2.pdf")

    assert [report.stages[stage].succeeded for stage in STAGES] == [0, 1, 1, 1]
    assert list(opened.tables("doctags").failures) == [
        "notes:bad-1.pdf",
        "notes:bad-2.pdf",
        "notes:long-1.pdf",
    ]
    assert "notes:long-2.pdf" in opened.tables("chunks").records


def test_force_with_retry_runs_only_the_named_failed_documents(failed: Home):
    """All finished documents are computed again."""
    before = _attempts(failed)

    _retry(failed, "bad-1.pdf", config={"force": True})

    again = _attempts(failed) - before
    assert {name for name in again if name.endswith(".pdf")} == {"bad-1.pdf"}
    assert len(failed.tables("doctags").failures) == 4


def test_the_launchpad_offers_and_explains_it():
    """The web UI has no other manual."""
    field = stage_asset("doctags", GRAPH["doctags"]).op.config_schema.config_type.fields["retry"]

    assert not field.is_required
    assert "Ids of failed documents to retry" in field.description
