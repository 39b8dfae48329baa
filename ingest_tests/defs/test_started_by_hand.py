"""A run started in the web UI does what a run of `ingest all` does."""

import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from ingest_assets.app.driver import due_batches, statistics_are_due
from ingest_assets.app.home import Home, open_home
from ingest_assets.core.schemas import LEXICAL_STATS
from ingest_assets.defs import resources
from ingest_assets.defs.automation import INGEST_ALL
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.instance import open_instance
from ingest_assets.defs.keys import asset_key, batches
from ingest_tests.conftest import NOTES
from ingest_tests.runs import run_batches

pytestmark = pytest.mark.graph


@pytest.fixture
def ingested(home: Home, tmp_path: Path) -> Home:
    """A home with three notes after `ingest all`, but without the statistics."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text)
    home.watch(folder)
    home.scan()
    run_batches(home, list(home.graph), {})
    return home


def _materialize(home: Home, batch: str, stages: list[str]) -> dg.ExecuteInProcessResult:
    """Start a run like the button: no tags, and no command around it."""
    job = build_definitions().resolve_job_def(INGEST_ALL)
    with open_instance(home.layout) as instance:
        instance.add_dynamic_partitions(batches.name or "", [batch])
        return job.execute_in_process(
            instance=instance, partition_key=batch, asset_selection=[asset_key(stage) for stage in stages]
        )


def test_it_scans_the_folders_first_and_updates_the_statistics(ingested: Home, tmp_path: Path):
    """No command does so before or after it."""
    (tmp_path / "notes" / "swarm.md").write_text(NOTES["swarm.md"].replace("May", "June"))
    assert statistics_are_due(ingested)

    (batch,) = ingested.ledger.batches()
    result = _materialize(ingested, batch, list(ingested.graph))

    home = open_home(ingested.layout.home)
    texts = home.tables("chunks").read(lambda rows: rows.select("text")).to_series().to_list()
    assert result.success
    assert any("June" in text for text in texts)
    assert not statistics_are_due(home)
    assert LEXICAL_STATS.asset in {
        event.asset_key.to_user_string() for event in result.all_events if event.asset_key is not None
    }


def test_it_rejects_duplicates(ingested: Home, tmp_path: Path):
    """Like `ingest all`: the later document is rejected with the id of the earlier one."""
    (tmp_path / "notes" / "twin.md").write_text(NOTES["feeding.md"])

    (first,) = ingested.ledger.batches()
    _materialize(ingested, first, list(ingested.graph))
    _, second = ingested.ledger.batches()
    _materialize(ingested, second, list(ingested.graph))

    home = open_home(ingested.layout.home)
    rows = home.tables("admission").read(lambda rows: rows.select("doc_id", "duplicate_of"))
    assert dict(rows.iter_rows())["notes:twin.md"] == "notes:feeding.md"


def test_another_batch_whose_verdicts_change_is_due(ingested: Home, tmp_path: Path):
    """A run has one batch; the sensor requests the others, where `ingest all` runs them."""
    (tmp_path / "notes" / "twin.md").write_text(NOTES["feeding.md"])
    ingested.scan()
    run_batches(ingested, list(ingested.graph), {})
    first, second = ingested.ledger.batches()
    seen = max(ingested.ledger.batches().values())

    (tmp_path / "notes" / "feeding.md").unlink()
    _materialize(ingested, first, list(ingested.graph))

    due = due_batches(open_home(ingested.layout.home), time.time(), seen=seen)
    assert [(each.batch, each.reason) for each in due] == [(second, "changed")]


def test_its_steps_share_one_home(ingested: Home, monkeypatch: pytest.MonkeyPatch):
    """Settings are read and stages created once, however many tables are written and checked."""
    opened: list[Home] = []

    def counted(*arguments: Any, **options: Any) -> Home:
        opened.append(open_home(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(resources, "open_home", counted)
    (batch,) = ingested.ledger.batches()
    _materialize(ingested, batch, list(ingested.graph))

    assert len(opened) == 2, "for the definitions, and for the run"
