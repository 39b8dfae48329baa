"""`ingest queue run` acquires and ingests what is due, waits for what is delayed, and repeats nothing."""

import time
from pathlib import Path

import polars as pl
import pytest

from ingest_assets.app.home import open_home
from ingest_tests.cli.pages import WEB, Crowd, note, put_note, serve_note, write_list
from ingest_tests.conftest import Command
from ingest_tests.intake.fetch.site import Site, Visit

pytestmark = pytest.mark.graph  # runs the whole graph many times


def _titles(command: Command) -> set[str]:
    """Return the first heading of every document in the tables."""
    chunks = pl.read_parquet(command.home / "data/chunks/*.parquet")
    return {headings[0] for headings in chunks["headings"]}


def test_queued_artifacts_are_acquired_and_ingested_once(
    ingest: Command, site: Site, notes: Path, tmp_path: Path
):
    """Pages and files alike; watched folders are not scanned, and a second run finds nothing to do."""
    home = open_home(ingest.home)
    home.watch(notes)
    home.scan()
    (tmp_path / "file.md").write_bytes(note("Smoker"))
    file = {"id": "file", "path": "file.md"}
    ingest("queue", "import", write_list(tmp_path, {"url": put_note(site, "Drone")}, file))

    result = ingest.json("queue", "run", **WEB)
    again = ingest.json("queue", "run", **WEB)

    assert result["queue"]["states"] == {"queued": 0, "in_progress": 0, "done": 2, "skipped": 0, "error": 0}
    assert (result["documents"], result["vectors"], result["failures"]) == (2, 2, [])
    assert len(result["batches"]["ran"]) == 1
    assert result["stages"]["lexical"]["succeeded"] == 2
    assert again["batches"] == {"ran": [], "complete_before": []}
    assert site.count("/Drone.md") == 1
    assert _titles(ingest) == {"Drone", "Smoker"}
    text = ingest("queue", "run", **WEB).stdout
    assert "2 documents, 2 converted" in text
    assert "Queue: 0 queued, 0 in progress, 2 done, 0 skipped, 0 error." in text


def test_a_page_that_fails_twice_is_ingested_after_a_drain(ingest: Command, site: Site, tmp_path: Path):
    """503, 503, 200: two retries, no failure, one document."""

    def flaky(visit: Visit) -> None:
        if visit.number < 3:
            visit.reply(503)
        else:
            serve_note(visit, "Flaky")

    ingest("queue", "import", write_list(tmp_path, {"id": "flaky", "url": site.page("/flaky.md", flaky)}))

    result = ingest.json("queue", "run", "--drain", **WEB)

    assert (result["exit_code"], result["documents"], result["failures"]) == (0, 1, [])
    assert site.count("/flaky.md") == 3
    totals = ingest.json("queue", "stats")["totals"]
    assert (totals["retries"], totals["fetches"], totals["completed"]["done"]) == (2, 3, 1)


def test_delayed_artifacts_are_reported_or_waited_for(ingest: Command, site: Site, tmp_path: Path):
    """Without --drain the result has the next time; with it, the command waits and says so."""
    first = {"id": "now", "url": put_note(site, "Now")}
    later = {"id": "later", "url": put_note(site, "Later"), "not_before": time.time() + 600}
    ingest("queue", "import", write_list(tmp_path, first, later))

    left = ingest.json("queue", "run", **WEB)
    everything = ingest.json("all", **WEB)
    result = ingest("all", **WEB).stdout

    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(later["not_before"]))
    assert (left["exit_code"], left["documents"]) == (0, 1)
    assert (left["queue"]["waiting"], left["queue"]["next_at"]) == (1, until)
    assert everything["queue"] == left["queue"]
    assert f"1 are not acquired yet; the next attempt is due at {until}. `ingest queue run --drain`" in result

    _bring_forward(ingest.home, "later", time.time() + 8)
    drained = ingest("queue", "run", "--drain", **WEB)

    assert "queue: waiting for 1 document; the next can be tried at " in drained.stderr
    assert _titles(ingest) == {"Now", "Later"}
    assert site.count("/Now.md") == 1


def _bring_forward(home: Path, artifact_id: str, at: float) -> None:
    """Make an artifact due now."""
    from ingest_assets.intake.schema import artifacts

    with open_home(home).ledger.begin() as connection:
        row = artifacts.c.artifact_id == artifact_id
        connection.execute(artifacts.update().where(row).values(not_before=at))


def test_a_missing_page_fails_alone_and_can_be_retried(ingest: Command, site: Site, tmp_path: Path):
    """Exit code 1 while an artifact is in error, 0 once the page is back."""
    gone = site.page("/gone.md", lambda visit: visit.reply(404))
    ingest(
        "queue", "import", write_list(tmp_path, {"id": "gone", "url": gone}, {"url": put_note(site, "Good")})
    )

    failed = ingest("queue", "run", check=1, **WEB)
    again = ingest.json("queue", "run", check=1, **WEB)
    put_note(site, "gone")
    retried = ingest.json("queue", "retry-failed", "--category", "input")
    repaired = ingest.json("queue", "run", **WEB)

    assert "failed: gone [documents E_FETCH_NOT_FOUND]" in failed.stderr
    assert (again["batches"]["ran"], again["queue"]["states"]["error"]) == ([], 1)
    assert retried["count"] == 1
    assert (repaired["documents"], repaired["failures"], repaired["queue"]["states"]["error"]) == (2, [], 0)
    assert (site.count("/gone.md"), site.count("/Good.md")) == (2, 1)


def test_a_refresh_asks_whether_a_page_changed(ingest: Command, site: Site, tmp_path: Path):
    """An unchanged page costs an answer without a body, a changed one is ingested again."""
    names = {"/a.md": "Heather", "/b.md": "Clover"}

    def tagged(visit: Visit) -> None:
        etag = f'"{names[visit.path]}"'
        if visit.headers.get("if-none-match") == etag:
            visit.begin(304, etag=etag)
        else:
            visit.reply(200, note(names[visit.path]), etag=etag, content_type="text/markdown")

    ingest("queue", "import", write_list(tmp_path, *({"url": site.page(path, tagged)} for path in names)))
    ingest("queue", "run", **WEB)
    names["/b.md"] = "Linden"
    refreshed = ingest.json("queue", "refresh")

    result = ingest.json("queue", "run", **WEB)

    assert refreshed["count"] == 2
    assert _titles(ingest) == {"Heather", "Linden"}
    assert result["stages"]["doctags"]["succeeded"] == 1
    assert [site.count(path) for path in names] == [2, 2]


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        ("", ("--workers", 1)),
        ("", ("--max-per-host", 1)),
        ("[queue]\nmax_per_resolver = {http = 1, file = 9}\n", ("--max-per-resolver", "file:4, other:2")),
    ],
    ids=["workers", "hosts", "resolvers"],
)
def test_limits_of_the_command_reach_the_step(
    ingest: Command, site: Site, tmp_path: Path, settings: str, flags: tuple[object, ...]
):
    """Without them it would be four at a time; other resolvers keep their limits."""
    (ingest.home / "ingest.toml").write_text(settings)
    crowd = Crowd()

    def busy(visit: Visit) -> None:
        with crowd.inside(0.2):
            visit.reply(404)

    pages = [{"url": site.page(f"/{number}.md", busy)} for number in range(6)]
    ingest("queue", "import", write_list(tmp_path, *pages))

    ingest("queue", "run", *flags, check=1, **WEB)

    assert crowd.most == 1


def test_a_batch_that_breaks_ends_the_drain(ingest: Command, site: Site, tmp_path: Path):
    """The same cause would break it again, and its delayed artifacts would never be acquired."""
    site.page(
        "/broken.pdf", lambda visit: visit.reply(200, b"%PDF-1.7\ncut off", content_type="application/pdf")
    )
    later = {"url": put_note(site, "Later"), "not_before": time.time() + 600}
    ingest("queue", "import", write_list(tmp_path, {"url": site.url("/broken.pdf")}, later))

    result = ingest.json("queue", "run", "--drain", check=1, **WEB, INGEST_STAGES__DOCTAGS__ERROR_BUDGET="0")

    assert len(result["broken_batches"]) == 1
    assert result["queue"]["waiting"] == 1
