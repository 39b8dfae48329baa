"""Lists of URLs, from the server to the vectors: shared between processes, killed, on both databases."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from ingest_tests.conftest import Command, clean_environment
from ingest_tests.end_to_end.leftovers import wait_until
from ingest_tests.intake.fetch.site import Site, Visit
from ingest_tests.intake.postgres import Postgres, running_postgres

EASY = {
    "INGEST_FETCH__ALLOW_PRIVATE": "true",
    "INGEST_FETCH__POLITENESS_DELAY_S": "0",
    "INGEST_QUEUE__RETRY_BACKOFF_SECONDS": "0",
    "INGEST_QUEUE__JITTER_SECONDS": "0",
}


@pytest.fixture
def site() -> Iterator[Site]:
    """A site without pages."""
    with Site().open() as site:
        yield site


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    with running_postgres() as server:
        yield server


def page(visit: Visit) -> None:
    """Serve a small document about its own path, after a moment."""
    time.sleep(0.05)
    text = f"# {visit.path}\n\nAll that a beekeeper should know about {visit.path} in the winter.\n"
    visit.reply(200, text.encode(), content_type="text/markdown")


def write_list(path: Path, site: Site, count: int) -> Path:
    """Write this number of pages of the site as a list to import."""
    urls = [site.page(f"/{number}.md", page) for number in range(count)]
    path.write_text("".join(json.dumps({"id": f"doc-{n}", "url": url}) + "\n" for n, url in enumerate(urls)))
    return path


def start(command: Command, *arguments: object) -> "subprocess.Popen[bytes]":
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = clean_environment() | EASY
    return subprocess.Popen(command.line(*arguments), env=environment, start_new_session=True, **quiet)


def vectors(command: Command) -> pl.DataFrame:
    """Return the dense table."""
    return pl.read_parquet(command.home / "data/embeddings/dense/*.parquet")


@pytest.mark.chaos
def test_a_run_killed_while_it_fetches_loses_nothing(ingest: Command, site: Site, tmp_path: Path, new_home):
    """Fetched artifacts are not fetched again, leases are free at once, and no byte differs."""
    ingest("queue", "import", write_list(tmp_path / "list.jsonl", site, 40), **EASY)
    process = start(ingest, "queue", "run", "--workers", 2)
    wait_until(lambda: sum(site.count(f"/{n}.md") for n in range(40)) >= 8, 60)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    fetched = {path for path in site.pages if site.count(path)}

    result = ingest.json("queue", "run", "--drain", **EASY)

    again = [path for path in fetched if site.count(path) > 1]
    assert len(again) <= 2, "only what was under way"
    assert result["queue"]["states"]["done"] == 40
    assert set(vectors(ingest)["doc_id"]) == {f"doc-{n}" for n in range(40)}
    other = new_home("uninterrupted")
    other("queue", "import", tmp_path / "list.jsonl", **EASY)
    other("queue", "run", **EASY)
    assert vectors(ingest).equals(vectors(other))


@pytest.mark.slow
def test_a_home_with_its_ledger_in_postgresql_works_the_same(
    ingest: Command, site: Site, tmp_path: Path, notes: Path, postgres: Postgres, new_home
):
    """With folders and lists; the tables are byte-equal to those of a home on SQLite."""
    listed = write_list(tmp_path / "list.jsonl", site, 6)
    settings = EASY | {"INGEST_INTAKE__LEDGER": postgres.fresh_url()}
    other = new_home("home-on-sqlite")

    for command, environment in ((ingest, settings), (other, EASY)):
        command("all", "--input", notes, **environment)
        command("queue", "import", listed, **environment)
        command("queue", "run", "--drain", **environment)

    status = ingest.json("status", **settings)
    assert status["known_documents"] == 9
    assert not (ingest.home / "state" / "ledger.sqlite").exists()
    named = {path: digest for path, digest in ingest.hashes().items() if not path.startswith("documents/")}
    assert named == {path: d for path, d in other.hashes().items() if not path.startswith("documents/")}
