"""The samples give the same bytes on every backend and with every number of workers."""

import json
import subprocess

import pytest

from ingest_assets.samples import samples_folder
from ingest_tests.conftest import Command, clean_environment

RUNS = [
    ("inline", 1),
    *[(kind, workers) for kind in ("threads", "processes") for workers in (1, 2, 4)],
    *[("ray", workers) for workers in (1, 2)],
]
LIMIT_S = 1800  # a few minutes on a quiet machine


@pytest.mark.slow
def test_the_samples_are_equal_over_every_backend_and_number_of_workers(ingest: Command):
    """With the document that is broken on purpose, whose failure must be equal too."""
    pytest.importorskip("ray")
    numbers = {"INGEST_STAGES__DOCTAGS__WORKERS": "2", "INGEST_STAGES__CHUNKS__WORKERS": "2"}

    done = subprocess.run(
        ingest.line("validate", "--json"),
        env=clean_environment() | numbers,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert [(run["backend"], run["workers"]) for run in result["runs"]] == RUNS
    assert [run["status"] for run in result["runs"]] == ["base"] + ["equal"] * (len(RUNS) - 1)
    assert len({json.dumps(run["tables"], sort_keys=True) for run in result["runs"]}) == 1
    assert {run["failed"] for run in result["runs"]} == {1}
    assert result["documents"] == len(list(samples_folder().iterdir()))
