"""Partitions that somebody adds in the web UI: a key is never a path, and only batches of the home run."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from ingest_assets.app.home import Home
from ingest_assets.core.errors import ConfigError
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.keys import asset_key
from ingest_assets.defs.resources import HomeResource
from ingest_tests.runs import run_batches

STAGES = ("documents", "doctags", "admission", "chunks", "dense", "lexical")


def snapshot(folder: Path) -> dict[str, str]:
    """Return every file with its hash, and every folder, except Dagster's own records of runs."""
    own = ("home/state/history", "home/state/storage", "home/state/schedules", "home/state/ledger")
    seen = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not name.startswith((*own, "home/state/.", "home/state/dagster")):
            seen[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return seen


def run_partition(
    home: Home, instance: dg.DagsterInstance, key: str, stages: Sequence[str]
) -> dg.ExecuteInProcessResult:
    """Run stages for a partition that was added by hand."""
    instance.add_dynamic_partitions("batches", [key])
    definitions = build_definitions(HomeResource(path=str(home.layout.home)), updates_statistics=False)
    return definitions.resolve_job_def("ingest_all").execute_in_process(
        instance=instance,
        partition_key=key,
        asset_selection=[asset_key(stage) for stage in stages],
        raise_on_error=False,
    )


def failures(result: dg.ExecuteInProcessResult) -> list[str]:
    """Return what the web UI shows for failed steps."""
    return [
        event.step_failure_data.user_failure_data.description or ""
        for event in result.all_events
        if event.is_step_failure and event.step_failure_data.user_failure_data
    ]


KEYS = [
    "../../../../victim",
    "../victim",
    "..",
    "{outside}/victim",
    "2026-01-01-0001/../../../../victim",
    "victim.parquet",
    "2026-01-01-0001",
]


@pytest.mark.graph
@pytest.mark.parametrize(
    ("key", "stages"), [*((key, STAGES) for key in KEYS), *((KEYS[0], (stage,)) for stage in STAGES)]
)
def test_an_invented_partition_touches_nothing(
    home: Home, watched: Path, instance: dg.DagsterInstance, tmp_path: Path, key: str, stages: tuple[str, ...]
):
    """The run fails with one line; no file, folder or lock is created, changed or removed anywhere."""
    run_batches(home, ["documents", "doctags"], {})
    for place in (tmp_path, home.layout.home, home.layout.data):
        (place / "victim" / "chunks").mkdir(parents=True)
        (place / "victim" / "letter.txt").write_text("mine")
        (place / "victim.parquet").write_bytes(b"PAR1 no table")
    key = key.replace("{outside}", str(tmp_path))
    before = snapshot(tmp_path)

    result = run_partition(home, instance, key, stages)

    assert not result.success
    assert all("is not a batch of" in line and "\n" not in line for line in failures(result))
    assert failures(result)
    assert snapshot(tmp_path) == before


def test_no_path_of_a_home_leads_out_of_its_folder(home: Home):
    """Whatever a batch is called."""
    layout = home.layout
    for batch in ("..", ".", "", "../x", "/x", "a/b", "a\0b"):
        for path_of in (layout.table, layout.parts, layout.lock, layout.quarantine):
            with pytest.raises(ConfigError, match="is not the name of a batch"):
                path_of("chunks", batch)


@pytest.mark.graph
def test_an_invented_partition_does_not_stop_the_statistics(
    home: Home, watched: Path, instance: dg.DagsterInstance
):
    """They read all partitions, but of the home's batches only."""
    run_batches(home, list(STAGES), {})
    instance.add_dynamic_partitions("batches", ["../../victim", "2026-01-01-0001"])
    definitions = build_definitions(HomeResource(path=str(home.layout.home)), updates_statistics=False)

    result = definitions.resolve_job_def("lexical_stats_only").execute_in_process(
        instance=instance, raise_on_error=False
    )

    assert result.success
