"""A killed machine never loses finished work."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from ingest_tests.conftest import Command, clean_environment
from ingest_tests.end_to_end.conftest import SAMPLES
from ingest_tests.end_to_end.leftovers import are_gone, attempts, below, outputs, staged, wait_until

pytestmark = pytest.mark.chaos


def _start(command: Command, folder: Path) -> "subprocess.Popen[bytes]":
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    line = command.line("all", "--input", folder)
    return subprocess.Popen(line, env=clean_environment(), start_new_session=True, **quiet)


def test_a_run_killed_during_doctags_continues_and_ends_in_the_same_bytes(
    ingest: Command, documents: Path, new_home
):
    """Only unfinished items are computed, and no byte differs."""
    process = _start(ingest, documents)
    wait_until(lambda: len(staged(ingest)) >= 2)
    workers = below(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: are_gone(workers), 30)
    finished, first = staged(ingest), attempts(ingest)

    result = ingest.json("all")

    computed = outputs(attempts(ingest)[len(first) :])
    assert 2 <= len(finished) < len(SAMPLES), "the kill must come in the middle"
    assert computed.isdisjoint(finished)
    assert len(computed) + len(finished) == len(SAMPLES) == result["converted"]
    whole = new_home("uninterrupted")
    whole("all", "--input", documents)
    assert ingest.hashes() == whole.hashes()


def test_sigterm_ends_the_run_as_ctrl_c_does(ingest: Command, documents: Path):
    """A supervisor signals all processes of a service; finished documents are kept and no process is left."""
    process = _start(ingest, documents)
    wait_until(lambda: len(staged(ingest)) >= 1)
    workers = below(process.pid)

    os.killpg(process.pid, signal.SIGTERM)

    assert process.wait(timeout=30) == 130
    wait_until(lambda: are_gone(workers), 20)
    finished = staged(ingest)
    assert outputs(attempts(ingest)) == finished
    assert {row.status for row in attempts(ingest)} == {"done", "cancelled"}
    result = ingest.json("all")
    assert result["converted"] == len(SAMPLES)
    assert result["stages"]["doctags"]["skipped"] == len(finished)
