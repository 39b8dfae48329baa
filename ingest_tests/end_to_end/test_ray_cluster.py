"""A cluster of two nodes loses one during a stage."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ingest_assets.core.layout import Layout
from ingest_assets.defs.instance import open_instance
from ingest_assets.samples import samples_folder
from ingest_tests.conftest import Command, clean_environment
from ingest_tests.end_to_end.leftovers import attempts, staged, wait_until
from ingest_tests.ray_nodes import two_worker_nodes

SAMPLES = [
    "association-rules.docx",
    "capping-and-moisture-trial.pdf",
    "committee-minutes-march-2024.docx",
    "first-inspection-course.pptx",
    "hive-records-2024.xlsx",
    "honey-labelling-rules.html",
    "pollen-calendar.html",
    "smoker-and-sting-safety.md",
    "winter-feeding-guide.md",
]


@pytest.fixture
def two_nodes():
    """A cluster, and its two nodes with one core each."""
    with two_worker_nodes() as made:
        yield made


@pytest.mark.chaos
def test_every_document_is_there_and_none_twice_when_a_node_is_lost(
    ingest: Command, two_nodes, tmp_path: Path, new_home
):
    """The tables are byte-equal to those of a local run."""
    cluster, nodes = two_nodes
    folder = _documents(tmp_path / "documents")
    where = {"INGEST_EXECUTION__BACKEND": "ray", "INGEST_EXECUTION__ADDRESS": cluster.address}
    process = subprocess.Popen(
        ingest.line("doctags", "--input", folder, "--json"),
        env=clean_environment() | where,
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(staged(ingest)) >= 3 or process.poll() is not None)
    staged_at_loss = len(staged(ingest))
    cluster.remove_node(nodes[0], allow_graceful=False)
    output, _ = process.communicate(timeout=300)

    alone = new_home("alone")
    alone.json("doctags", "--input", folder)
    assert process.returncode == 0, output
    assert 3 <= staged_at_loss < len(SAMPLES), "the loss must come in the middle"
    assert ingest.hashes() == alone.hashes()
    done = [row for row in attempts(ingest) if row.status == "done"]
    assert Counter(row.item_id for row in done) == {f"documents:{name}": 1 for name in SAMPLES}


@pytest.mark.slow
def test_the_log_of_the_run_shows_the_cluster(ingest: Command, notes: Path):
    """The UI shows where the workers of a run are."""
    ingest.apart("doctags", "--input", notes, "--backend", "ray", "--workers", "1")

    with open_instance(Layout(ingest.home)) as instance:
        (run,) = instance.get_runs()
        lines = [entry.message for entry in instance.all_logs(run.run_id)]
    assert any("doctags: 1 workers, ray (1 as configured)" in line for line in lines)
    assert any("doctags: worker 1 is ready on" in line for line in lines)


def _documents(folder: Path) -> Path:
    folder.mkdir()
    for name in SAMPLES:
        shutil.copy(samples_folder() / name, folder / name)
    return folder
