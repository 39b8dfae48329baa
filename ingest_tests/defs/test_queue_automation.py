"""The sensor, the schedule and the runs of queued artifacts, on a real instance and ledger."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from ingest_assets.app.graph import stages_between
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.inspect import find_document
from ingest_assets.app.plan import batch_states
from ingest_assets.app.repair import clean_up
from ingest_assets.core.errors import ConfigError
from ingest_assets.defs.keys import PARTITION
from ingest_assets.intake.queue.artifacts import NewArtifact
from ingest_assets.intake.queue.queue import Filter
from ingest_tests.defs.test_automation import _look, _night
from ingest_tests.intake.fetch.site import Site
from ingest_tests.runs import run_batches

DOCUMENTS = stages_between("documents", "documents")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site on loopback, and settings that allow fetching from it without a pause."""
    easy = {"FETCH__ALLOW_PRIVATE": "true", "FETCH__POLITENESS_DELAY_S": "0", "QUEUE__JITTER_SECONDS": "0"}
    for name, value in easy.items():
        monkeypatch.setenv(f"INGEST_{name}", value)
    with Site().open() as site:
        yield site


def queue(home: Home, **urls: str) -> None:
    """Queue pages by id."""
    home.queue.enqueue([NewArtifact(artifact_id=name, url=url) for name, url in urls.items()], time.time())


def rows(home: Home) -> dict[str, dict]:
    """Return the documents table, by id."""
    found = home.tables("documents").scan().collect().to_dicts()
    return {row["doc_id"]: row for row in found}


def test_queued_artifacts_get_a_batch_and_a_request(home: Home, instance: dg.DagsterInstance, site: Site):
    """Once, and with the tag that limits runs by source."""
    queue(home, a=site.page("/a.md", lambda v: v.reply(200, b"# A\n\nText.\n")))

    first = _look(instance)
    second = _look(instance, first.cursor)

    (request,) = first.run_requests
    assert home.queue.get("a").batch == request.partition_key
    assert request.tags["ingest/source"] == "queue"
    # It did not run and is still due, but for the same time: Dagster drops a run key that it knows.
    keys = [request.run_key for request in second.run_requests or []]
    assert keys == [r.run_key for r in _look(instance, second.cursor).run_requests or []]


@pytest.mark.graph
def test_a_batch_is_requested_again_when_its_artifact_is_due_again(
    home: Home, instance: dg.DagsterInstance, site: Site, monkeypatch
):
    """Not before, and each time with a new key; a batch with an active run is not requested."""
    monkeypatch.setenv("INGEST_QUEUE__RETRY_BACKOFF_SECONDS", "300")
    queue(home, a=site.page("/a.md", lambda v: v.reply(503)))
    first = _look(instance)
    run_batches(open_home(home.layout.home), DOCUMENTS, {}, reason="test")

    waiting = _look(instance, first.cursor)
    later = time.time() + 400
    monkeypatch.setattr("ingest_assets.defs.automation.time.time", lambda: later)
    due = _look(instance, waiting.cursor)

    assert not waiting.run_requests
    (request,) = due.run_requests
    assert request.run_key != first.run_requests[0].run_key
    tags = request.tags | {PARTITION: request.partition_key}  # as Dagster sets them
    instance.add_run(dg.DagsterRun("ingest_all", tags=tags, status=dg.DagsterRunStatus.STARTED))
    assert not _look(instance, due.cursor).run_requests


@pytest.mark.graph
def test_the_schedule_does_not_run_delayed_artifacts(home: Home, instance: dg.DagsterInstance, site: Site):
    """A run could not do anything; `ingest status` and the queue report them."""
    queue(home, a=site.page("/a.md", lambda v: v.reply(503)))
    home.scan()
    run_batches(home, DOCUMENTS, {}, reason="test")
    run_batches(home, stages_between("doctags", "embeddings"), {}, reason="test")

    skipped = _night(instance)

    assert isinstance(skipped, dg.SkipReason)
    assert "1 queued documents are not due yet" in skipped.skip_message
    (batch,) = home.ledger.batches()
    assert batch_states(home, batch)[0].run == {"a": "fetch"}


def test_documents_say_where_they_came_from_and_what_they_are(home: Home, site: Site):
    """The row of a fetched document has its URL, host, validators and stored path."""
    url = site.page(
        "/notes/a.md", lambda v: v.reply(200, b"# A\n", etag='"1"', content_type="text/x-unknown")
    )
    listed = NewArtifact(artifact_id="a", url=url, meta={"licence": "CC0", "année": 2024})
    home.queue.enqueue([listed], time.time())
    home.scan()

    run_batches(home, DOCUMENTS, {}, reason="test")

    row = rows(home)["a"]
    assert json.loads(row["meta"]) == {"licence": "CC0", "année": 2024}
    assert Path(row["path"]).read_bytes() == b"# A\n"
    assert (row["uri"], row["host"], row["resolver"], row["source"]) == (url, "127.0.0.1", "http", "queue")
    assert (row["etag"], row["mime"], row["size_bytes"]) == ('"1"', "text/markdown", 4)


@pytest.mark.graph
def test_an_abandoned_artifact_is_a_failed_document_until_it_is_queued_again(home: Home, site: Site):
    """In the footer, once, with category and code of the fetch; runs do not retry it."""
    url = site.page("/a.md", lambda v: v.reply(404) if v.number == 1 else v.reply(200, b"# A\n"))
    queue(home, a=url)
    home.scan()
    first = run_batches(home, DOCUMENTS, {}, reason="test")
    second = run_batches(home, DOCUMENTS, {}, reason="test")

    (failure,) = home.tables("documents").failures.values()
    assert (failure.error.category, failure.error.code) == ("input", "E_FETCH_NOT_FOUND")
    assert first.stages["documents"].failed == 1
    assert (second.ran, site.count("/a.md")) == ([], 1)

    home.queue.retry_failed(time.time())
    run_batches(home, DOCUMENTS, {}, reason="test")

    assert rows(home).keys() == {"a"}
    assert home.tables("documents").failures == {}


@pytest.mark.graph
def test_an_unreachable_provider_is_abandoned_and_its_batch_is_complete(home: Home, site: Site, monkeypatch):
    """Otherwise the schedule would run the batch every night for nothing."""
    monkeypatch.setenv("INGEST_QUEUE__MAX_JOB_ATTEMPTS", "1")
    queue(home, a=site.page("/a.md", lambda v: v.reply(503)))
    here = open_home(home.layout.home)
    here.scan()
    run_batches(here, DOCUMENTS, {}, reason="test")

    (failure,) = here.tables("documents").failures.values()
    (batch,) = here.ledger.batches()
    assert (failure.error.category, failure.error.code) == ("provider", "E_FETCH_UNAVAILABLE")
    assert batch_states(here, batch)[0].is_complete()


@pytest.mark.graph
def test_bytes_lost_from_the_store_are_fetched_again(home: Home, site: Site):
    """Missing or damaged files are replaced by the next runs."""
    queue(home, a=site.page("/a.md", lambda v: v.reply(200, b"# A\n", etag='"1"')))
    home.scan()
    run_batches(home, DOCUMENTS, {}, reason="test")
    blob = Path(rows(home)["a"]["path"])

    blob.unlink()
    run_batches(home, DOCUMENTS, {"force": True}, reason="test")
    assert blob.read_bytes() == b"# A\n"

    blob.write_bytes(b"# B\n")
    broken = run_batches(home, DOCUMENTS, {"force": True}, reason="test")
    assert [e.code for e in broken.errors] == ["E_DOCUMENT_MISSING"], "removed, and not there at the retry"
    run_batches(home, DOCUMENTS, {"force": True}, reason="test")
    assert blob.read_bytes() == b"# A\n"


def test_clean_up_removes_unused_files_and_nothing_else(home: Home, site: Site):
    """Old bytes of a changed document, and abandoned downloads."""
    url = site.page("/a.md", lambda v: v.reply(200, b"# Old\n" if v.number == 1 else b"# New\n"))
    queue(home, a=url)
    home.scan()
    run_batches(home, DOCUMENTS, {}, reason="test")
    old = Path(rows(home)["a"]["path"])
    home.queue.refresh(time.time())
    run_batches(home, DOCUMENTS, {}, reason="test")
    new = Path(rows(home)["a"]["path"])
    partial = home.layout.partial("https://broken.example/")
    partial.parent.mkdir(parents=True, exist_ok=True)
    partial.write_bytes(b"half")

    assert clean_up(home).blobs == 0, "what came today may not be recorded yet"
    long_ago = time.time() - 30 * 86_400
    for path in (old, new, partial):
        os.utime(path, (long_ago, long_ago))
    tidied = clean_up(home)

    assert (tidied.blobs, tidied.partials, tidied.size_bytes) == (1, 1, 6)
    assert (old.exists(), new.exists(), partial.exists()) == (False, True, False)


@pytest.mark.graph
def test_old_documents_are_refreshed(home: Home, instance: dg.DagsterInstance, site: Site, monkeypatch):
    """`queue.refresh_days`; off by default."""
    queue(home, a=site.page("/a.md", lambda v: v.reply(200, b"# A\n")))
    home.scan()
    run_batches(home, DOCUMENTS, {}, reason="test")
    cursor = _look(instance).cursor
    assert [a.state for a in home.queue.find(Filter())] == ["done"]

    monkeypatch.setenv("INGEST_QUEUE__REFRESH_DAYS", "0.000001")
    time.sleep(0.2)
    again = _look(instance, cursor)

    assert len(again.run_requests) == 1
    assert home.queue.get("a").state == "queued"
    assert pl.Series(list(rows(home))).to_list() == ["a"], "it stays until it is known what became of it"


@pytest.mark.graph
def test_inspecting_an_artifact_that_is_not_a_document_says_why(home: Home, site: Site):
    """Skipped as a duplicate, abandoned, or not acquired yet."""
    queue(home, a=site.page("/a.md", lambda v: v.reply(200, b"# A\n")))
    queue(home, same=site.page("/b.md", lambda v: v.reply(200, b"# A\n")))
    queue(home, gone=site.page("/c.md", lambda v: v.reply(404)))
    home.scan()
    run_batches(home, DOCUMENTS, {}, reason="test")
    queue(home, later="https://example.org/later.pdf")

    said = {}
    for name in ("same", "gone", "later"):
        with pytest.raises(ConfigError) as refused:
            find_document(home, name)
        said[name] = str(refused.value)

    assert said["same"] == "same was skipped: its bytes are the same as those of a. Inspect a."
    assert said["gone"].startswith("gone was not acquired: ")
    assert said["later"] == "later is queued and not acquired yet; run `ingest queue run`."
