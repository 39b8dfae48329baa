"""A killed machine never costs finished work."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from ingest_assets.runner import read_manifest
from ingest_assets.samples import samples_folder
from ingest_tests.conftest import Command, clean_environment

SAMPLES = [
    "association-rules.docx",
    "capping-and-moisture-trial.pdf",
    "first-inspection-course.pptx",
    "hive-records-2024.xlsx",
    "honey-labelling-rules.html",
    "pollen-calendar.html",
    "smoker-and-sting-safety.md",
    "winter-feeding-guide.md",
]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder with samples of every format, among them one that takes a while."""
    folder = tmp_path / "documents"
    folder.mkdir()
    for name in SAMPLES:
        shutil.copy(samples_folder() / name, folder / name)
    return folder


def _wait_until(condition, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for did not happen"
        time.sleep(0.02)


def _start(command: Command, folder: Path) -> "subprocess.Popen[bytes]":
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    line = command.line("all", "--input", folder)
    return subprocess.Popen(line, env=clean_environment(), start_new_session=True, **quiet)


def _staged(command: Command) -> list[Path]:
    return list((command.home / "data" / "doctags" / ".parts").rglob("[!.]*.parquet"))


def _workers(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_doctags_continues_and_ends_in_the_same_bytes(
    ingest: Command, documents: Path, new_home
):
    """Power may fail at any moment: only unfinished items are computed, and no byte differs."""
    process = _start(ingest, documents)
    _wait_until(lambda: len(_staged(ingest)) >= 2)
    workers = _workers(process.pid)
    process.kill()
    process.wait()
    _wait_until(lambda: not any(worker.is_running() for worker in workers), 30)
    finished = {part.name for part in _staged(ingest)}
    first_rows = sum(1 for _ in read_manifest(ingest.home / "state/manifests/doctags.jsonl"))

    result = ingest.json("all")

    rows = list(read_manifest(ingest.home / "state/manifests/doctags.jsonl"))[first_rows:]
    computed = {Path(path).name for row in rows for path in row.outputs}
    assert 2 <= len(finished) < len(SAMPLES), "the kill must come in the middle"
    assert computed.isdisjoint(finished)
    assert len(computed) + len(finished) == len(SAMPLES) == result["converted"]
    whole = new_home("uninterrupted")
    whole("all", "--input", documents)
    assert ingest.hashes() == whole.hashes()


@pytest.mark.slow
def test_ctrl_c_ends_the_run_without_orphans_and_the_next_run_continues(ingest: Command, documents: Path):
    """A person changes their mind; the terminal sends SIGINT to the whole group."""
    process = _start(ingest, documents)
    _wait_until(lambda: len(_staged(ingest)) >= 1)
    workers = _workers(process.pid)

    os.killpg(process.pid, signal.SIGINT)

    assert process.wait(timeout=30) == 130
    _wait_until(lambda: not any(worker.is_running() for worker in workers), 10)
    result = ingest.json("all")
    assert result["converted"] == len(SAMPLES)
    assert result["stages"]["doctags"]["skipped"] >= 1
