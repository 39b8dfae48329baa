"""The same documents give the same bytes on every backend."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ingest_assets.samples import samples_folder
from ingest_tests.conftest import Command, clean_environment

RUNS = [("inline", 1), ("threads", 2), ("processes", 2), ("ray", 2)]
LIMIT_S = 600


@pytest.fixture
def documents(notes: Path) -> Path:
    """Notes, a small PDF, a Word file, and the broken sample."""
    for name in ("capping-and-moisture-trial.pdf", "association-rules.docx", "damaged-inspection-report.pdf"):
        shutil.copy(samples_folder() / name, notes / name)
    return notes


@pytest.mark.slow
def test_the_tables_are_equal_over_every_backend(ingest: Command, documents: Path):
    """With a broken document, whose failure must be equal too."""
    pytest.importorskip("ray")
    numbers = {"INGEST_STAGES__DOCTAGS__WORKERS": "2", "INGEST_STAGES__CHUNKS__WORKERS": "2"}
    kinds = ",".join(kind for kind, _ in RUNS)

    done = subprocess.run(
        ingest.line("validate", "--input", documents, "--only", kinds, "--workers", 2, "--json"),
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
    assert result["documents"] == len(list(documents.iterdir())) == 6
