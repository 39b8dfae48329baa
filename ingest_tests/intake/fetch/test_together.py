"""Concurrent and killed fetches: the store has complete documents and parts that can be continued."""

import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from ingest_assets.intake.fetch import Fetched
from ingest_tests.intake.fetch.conftest import Desk, tried
from ingest_tests.intake.fetch.site import PDF, Site, Visit

MEBIBYTE = 1024 * 1024
BODY = b"%PDF-1.7\n" + random.Random(6).randbytes(12 * MEBIBYTE)

FETCH = """
import sys
from pathlib import Path
from ingest_assets.intake.fetch import Fetcher
from ingest_assets.settings.intake import FetchOptions
from ingest_assets.parsing.media import media_type
from ingest_assets.storage.blobs import ContentStore
from ingest_assets.core.layout import Layout

options = FetchOptions(allow_private=True, politeness_delay_s=0)
store = ContentStore(Layout(Path(sys.argv[1])), checkpoint_bytes=1024 * 1024)
Fetcher(store, options, media_type).fetch(sys.argv[2])
"""


def test_threads_that_fetch_the_same_url_are_independent(site: Site, desk: Desk):
    """All receive at the same time, each gets the whole document, one blob remains."""
    all_here = threading.Barrier(6, timeout=10)

    def page(visit: Visit) -> None:
        visit.begin(200, content_length=len(PDF), etag='"one"')
        visit.send(PDF[:100])
        all_here.wait()
        visit.send(PDF[100:])

    url, fetcher = site.page("/a.pdf", page), desk.fetcher()

    with ThreadPoolExecutor(6) as pool:
        came = [f for f in pool.map(fetcher.fetch, [url] * 6) if isinstance(f, Fetched)]

    assert len(came) == 6
    assert {one.path.read_bytes() for one in came} == {PDF}
    assert len(desk.blobs()) == 1
    assert desk.partials() == []


def test_many_threads_get_whole_documents_from_cut_bodies(site: Site, desk: Desk):
    """Resuming, restarting and finishing compete for the same partial file."""

    def page(visit: Visit) -> None:
        cut_at = 2000 + visit.number % 5000 if visit.number % 2 else None
        visit.serve(PDF, '"one"', cut_at)

    url, fetcher = site.page("/a.pdf", page), desk.fetcher(breaker_failures=10_000)

    def until_complete(_: int) -> bytes:
        came, errors = tried(fetcher, url, attempts=50)
        assert {error.code for error in errors} <= {"E_FETCH_CUT_OFF"}
        assert isinstance(came, Fetched)
        return came.path.read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(until_complete, range(64))) == {PDF}
    assert len(desk.blobs()) == 1


def test_a_killed_fetch_leaves_a_partial_that_the_next_one_resumes(site: Site, desk: Desk):
    """SIGKILL during the body: no blob; the next fetch requests only the rest."""
    is_half_way = threading.Event()

    def page(visit: Visit) -> None:
        if visit.number > 1:
            visit.serve(BODY, '"one"')
            return
        visit.begin(200, content_length=len(BODY), etag='"one"')
        visit.send(BODY[: 6 * MEBIBYTE])
        is_half_way.set()
        visit.is_over.wait(30)

    url = site.page("/a.pdf", page)
    process = subprocess.Popen([sys.executable, "-c", FETCH, str(desk.home), url])
    assert is_half_way.wait(30)
    deadline = time.monotonic() + 20
    while not list(desk.layout.partials.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()

    left = sorted({path.suffix for path in desk.partials()})
    blobs = desk.blobs()
    came = desk.fetch(url)

    assert left[:2] == [".json", ".part"]
    assert blobs == []
    assert came.resumed_from_bytes >= MEBIBYTE
    assert came.path.read_bytes() == BODY
    assert site.visits[1].headers["range"] == f"bytes={came.resumed_from_bytes}-"
