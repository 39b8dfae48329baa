"""`ingest queue run` in separate processes: interrupted, and two at the same time."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from ingest_assets.app.home import open_home
from ingest_assets.cli.signals import INTERRUPTED
from ingest_assets.intake.queue.artifacts import Artifact
from ingest_tests.cli.pages import WEB, Crowd, put_note, serve_note, write_list
from ingest_tests.conftest import Command, clean_environment
from ingest_tests.end_to_end.leftovers import wait_until
from ingest_tests.intake.fetch.site import Site, Visit

PAGES = 10


def _start(command: Command, *flags: object) -> "subprocess.Popen[str]":
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    line = command.line("queue", "run", *flags)
    return subprocess.Popen(line, env=clean_environment() | WEB, **pipes)


def _artifact(command: Command, artifact_id: str) -> Artifact:
    found = open_home(command.home).queue.get(artifact_id)
    assert found is not None
    return found


@pytest.mark.chaos
def test_an_interrupted_run_keeps_acquired_artifacts_and_the_next_run_continues(
    ingest: Command, site: Site, tmp_path: Path
):
    """The interrupted attempt does not count."""

    def slow(visit: Visit) -> None:
        if visit.number > 1:
            serve_note(visit, "Slow")
            return
        visit.begin(200, content_length=10_000)
        while not visit.is_over.wait(0.1):
            visit.send(b"x")

    pages = {"quick": put_note(site, "Quick"), "slow": site.page("/slow.md", slow)}
    ingest("queue", "import", write_list(tmp_path, *({"id": name, "url": pages[name]} for name in pages)))
    process = _start(ingest)
    wait_until(lambda: site.count("/slow.md") == 1 and _artifact(ingest, "quick").state == "done")

    process.send_signal(signal.SIGINT)
    pressed_at = time.monotonic()
    _, errors = process.communicate(timeout=60)

    assert process.returncode == INTERRUPTED, errors
    assert time.monotonic() - pressed_at < 20
    assert "ingest: stopping" in errors
    assert "Traceback" not in errors
    slow_one = _artifact(ingest, "slow")
    assert (slow_one.state, slow_one.attempts, slow_one.lease_expires) == ("queued", 0, None)
    result = ingest.json("queue", "run", **WEB)
    assert (result["documents"], result["vectors"], result["failures"]) == (2, 2, [])
    assert (site.count("/Quick.md"), site.count("/slow.md")) == (1, 2)


@pytest.mark.chaos
def test_a_waiting_drain_stops_at_an_interrupt(ingest: Command, site: Site, tmp_path: Path):
    """A drain can wait for hours; Ctrl-C must end it at once."""
    later = {"id": "later", "url": put_note(site, "Later"), "not_before": time.time() + 3600}
    ingest("queue", "import", write_list(tmp_path, later))
    process = _start(ingest, "--drain")
    assert process.stderr is not None
    told = process.stderr.readline()
    time.sleep(1)

    process.send_signal(signal.SIGINT)
    pressed_at = time.monotonic()
    _, errors = process.communicate(timeout=30)

    assert told.startswith("queue: waiting for 1 document; the next can be tried at ")
    assert process.returncode == INTERRUPTED
    assert time.monotonic() - pressed_at < 5
    assert errors == "ingest: interrupted; finished documents are kept, the next run continues.\n"


@pytest.mark.slow
def test_two_drains_share_the_work_and_do_none_of_it_twice(ingest: Command, site: Site, tmp_path: Path):
    """Both end when everything is in the tables, and report it."""
    crowd = Crowd()

    def unhurried(name: str) -> Callable[[Visit], None]:
        def serve(visit: Visit) -> None:
            with crowd.inside(1.0):
                serve_note(visit, name)

        return serve

    names = [f"Page{number}" for number in range(PAGES)]
    urls = [site.page(f"/{name}.md", unhurried(name)) for name in names]
    ingest("queue", "import", write_list(tmp_path, *({"url": url} for url in urls)))
    flags = ("--drain", "--workers", 1, "--json")

    processes = [_start(ingest, *flags), _start(ingest, *flags)]
    ended = [process.communicate(timeout=300) for process in processes]

    assert [process.returncode for process in processes] == [0, 0], ended
    results = [json.loads(out) for out, _ in ended]
    assert [site.count(f"/{name}.md") for name in names] == [1] * PAGES
    assert crowd.most == 2, "they did not work at the same time"
    for result in results:
        assert result["queue"]["states"]["done"] == PAGES
        assert (result["documents"], result["vectors"]) == (PAGES, PAGES)
    converted = sum(result["stages"]["doctags"]["succeeded"] for result in results)
    assert converted == PAGES
    rows = pl.read_parquet(ingest.home / "data/documents/*.parquet")
    assert sorted(rows["doc_id"]) == sorted(urls)
