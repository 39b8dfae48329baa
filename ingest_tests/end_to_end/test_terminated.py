"""A run terminated in the web UI: CANCELED soon, nothing left behind, and the next run continues."""

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ingest_tests.conftest import Command
from ingest_tests.end_to_end import webserver
from ingest_tests.end_to_end.conftest import SAMPLES
from ingest_tests.end_to_end.leftovers import are_gone, attempts, below, line_of, outputs, staged
from ingest_tests.end_to_end.webserver import Web

pytestmark = pytest.mark.chaos

GRACE_S = 5.0
ASSETS = [
    ["documents"],
    ["doctags"],
    ["admission"],
    ["chunks"],
    ["embeddings", "dense"],
    ["embeddings", "lexical"],
]


@pytest.fixture
def web(ingest: Command) -> Iterator[Web]:
    """A server that has scanned its folders, found none, and will not scan again soon."""
    (ingest.home / "ingest.toml").write_text("[automation]\nscan_interval_seconds = 3600\n", encoding="utf-8")
    web = Web(ingest)
    try:
        web.wait_for(lambda: web.ask(webserver.TICKS)["sensorOrError"]["sensorState"]["ticks"])
        yield web
    finally:
        assert web.stop() == 0


def _processes_of_the_run(web: Web) -> list[psutil.Process]:
    """Return the process that Dagster's code server started for the run, and its workers."""
    (run,) = [each for each in below(web.process.pid) if "spawn_main" in line_of(each)]
    return [run, *below(run.pid)]


def test_a_terminated_run_is_cancelled_within_the_grace_time_and_the_next_continues(
    web: Web, ingest: Command, documents: Path
):
    """Finished documents are kept, and every other one has a row with the reason."""
    ingest("all", "--until", "documents", "--input", documents)
    (batch,) = web.wait_for(lambda: web.ask(webserver.ASSETS)["assetNodes"][0]["partitionKeys"])
    run_id = web.start_run("ingest_all", batch, ASSETS)
    web.wait_for(lambda: staged(ingest), every_s=0.1)
    of_the_run = _processes_of_the_run(web)

    web.terminate(run_id)
    asked_at = time.monotonic()

    assert web.final_status(run_id) == "CANCELED"
    assert time.monotonic() - asked_at < GRACE_S + 10
    assert len(of_the_run) >= 3, "the run has a process, and its items have others"
    web.wait_for(lambda: are_gone(of_the_run), 30)
    first, finished = attempts(ingest), staged(ingest)
    assert 1 <= len(finished) < len(SAMPLES), "the termination must come in the middle"
    assert outputs(first) == finished
    assert {row.status for row in first if not row.outputs} == {"cancelled"}

    assert web.launch("ingest_all", batch, ASSETS) == "SUCCESS"

    computed = outputs(attempts(ingest)[len(first) :])
    assert computed.isdisjoint(finished)
    assert len(computed) + len(finished) == len(SAMPLES)
