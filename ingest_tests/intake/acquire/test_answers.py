"""What servers send, and what the ledger stores of it: state, category, attempts and message."""

import gzip
import hashlib
import resource
import time

import pytest

from ingest_assets.intake.fetch import Network
from ingest_assets.intake.queue.artifacts import Artifact
from ingest_tests.intake.acquire.conftest import NOW, Intake
from ingest_tests.intake.fetch.conftest import Switchboard
from ingest_tests.intake.fetch.site import PDF, Site, Visit

MIB = 1024 * 1024


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def failed(artifact: Artifact) -> tuple[str, str, int, bool]:
    """Return how it failed: category, code, attempts and whether the error is retryable."""
    assert artifact.last_error is not None
    assert "\n" not in artifact.last_error.message
    error = artifact.last_error
    return error.category, error.code, artifact.attempts, error.retryable


def test_a_server_that_is_unavailable_twice_and_then_answers_costs_three_attempts(
    intake: Intake, site: Site
) -> None:
    """503, 503, 200: done, with the backoff between the attempts doubling."""
    url = site.page("/a.pdf", lambda v: v.reply(200, PDF) if v.number == 3 else v.reply(503))
    batch = intake.add("a", url=url)

    waits = []
    for _ in range(2):
        intake.run(batch)
        waits.append(intake["a"].not_before - intake.now)
        assert (intake["a"].state, intake["a"].last_error.category) == ("queued", "provider")  # type: ignore[union-attr]
        intake.now = intake["a"].not_before
    intake.run(batch)

    artifact = intake["a"]
    assert waits == [60, 120]
    assert (artifact.state, artifact.attempts, artifact.last_error) == ("done", 3, None)
    assert (artifact.content_hash, artifact.mime, artifact.size_bytes) == (
        sha256(PDF),
        "application/pdf",
        len(PDF),
    )
    assert intake.living() == {"a": sha256(PDF)}


def test_an_artifact_that_is_not_due_is_not_retried(intake: Intake, site: Site) -> None:
    """A second run right after the first respects the backoff."""
    batch = intake.add("a", url=site.page("/a.pdf", lambda v: v.reply(503)))

    intake.run(batch)
    report = intake.run(batch)

    assert (report.ended, intake["a"].attempts, site.count("/a.pdf")) == ({}, 1, 1)


def test_retry_after_is_respected(intake: Intake, site: Site) -> None:
    """429 with Retry-After: 300 replaces the backoff."""
    url = site.page("/a.pdf", lambda v: v.reply(200, PDF) if v.number > 1 else v.reply(429, retry_after=300))
    batch = intake.add("a", url=url)

    intake.run(batch)

    artifact = intake["a"]
    assert (artifact.state, artifact.not_before - NOW) == ("queued", 300)
    assert failed(artifact) == ("provider", "E_FETCH_RATE_LIMITED", 1, True)
    assert "returned 429" in artifact.last_error.message  # type: ignore[union-attr]
    assert "(Retry-After: 300 s)" in artifact.last_error.message  # type: ignore[union-attr]


def test_a_paused_host_costs_its_other_documents_no_attempt(intake: Intake, site: Site) -> None:
    """The second document of the host is released until the pause ends."""
    busy = intake.add("busy", url=site.page("/a", lambda v: v.reply(429, retry_after=300)))
    intake.run(busy)
    other = intake.add("other", url=site.page("/b", lambda v: v.reply(200, PDF)))

    report = intake.run(other)

    assert report.ended == {"released": 1}
    assert (intake["other"].state, intake["other"].attempts, site.count("/b")) == ("queued", 0, 0)
    assert intake["other"].not_before == pytest.approx(NOW + 300, abs=5)
    assert intake.measures.totals().throttled == 1


def test_a_missing_page_is_an_error_at_once(intake: Intake, site: Site) -> None:
    """404 is permanent: one attempt."""
    artifact = intake.acquire("a", site.page("/a.pdf", lambda v: v.reply(404)))

    assert artifact.state == "error"
    assert failed(artifact) == ("input", "E_FETCH_NOT_FOUND", 1, False)
    assert artifact.last_error.message.endswith("correct the URL, or remove the document.")  # type: ignore[union-attr]


def test_a_body_that_stops_half_way_is_resumed(intake: Intake, site: Site) -> None:
    """The second attempt requests only the rest, and the content is correct."""
    body = PDF * 200

    def page(visit: Visit) -> None:
        visit.serve(body, '"v1"', cut_at=len(body) // 2 if visit.number == 1 else None)

    artifact = intake.acquire("a", site.page("/a.pdf", page))

    assert (artifact.state, artifact.attempts, artifact.content_hash) == ("done", 2, sha256(body))
    assert artifact.detail["resumed_from_bytes"] == len(body) // 2
    assert site.visits[1].headers["range"] == f"bytes={len(body) // 2}-"


def test_a_document_that_did_not_change_is_done_again_without_its_bytes(intake: Intake, site: Site) -> None:
    """304 to the conditional request of a refresh; the document does not change."""

    def page(visit: Visit) -> None:
        if visit.headers.get("if-none-match") == '"v1"':
            visit.reply(304, etag='"v1"')
        else:
            visit.reply(200, PDF, etag='"v1"')

    before = intake.acquire("a", site.page("/a.pdf", page))
    intake.now += 86_400
    intake.queue.refresh(intake.now)
    assert intake["a"].state == "queued"
    assert intake.living() == {"a": sha256(PDF)}
    intake.run(before.batch or "")

    artifact = intake["a"]
    assert (artifact.state, artifact.attempts, artifact.last_error) == ("done", 1, None)
    assert (artifact.content_hash, artifact.mime, artifact.etag) == (before.content_hash, before.mime, '"v1"')
    assert (site.count("/a.pdf"), intake.measures.totals().fetch_bytes) == (2, len(PDF))
    assert intake.living() == {"a": sha256(PDF)}


def test_a_document_that_changed_at_its_server_has_new_bytes_after_a_refresh(
    intake: Intake, site: Site
) -> None:
    """The document keeps its id, number and batch."""
    url = site.page(
        "/a", lambda v: v.reply(200, b"# Old\n" if v.number == 1 else b"# New\n", etag=f'"{v.number}"')
    )
    before = intake.acquire("a", url)

    intake.queue.refresh(intake.now)
    intake.run(before.batch or "")

    assert (intake["a"].state, intake["a"].etag) == ("done", '"2"')
    assert intake.living() == {"a": sha256(b"# New\n")}
    assert intake["a"].doc_seq == before.doc_seq


def test_a_document_that_its_server_removed_is_deleted(intake: Intake, site: Site) -> None:
    """410 at a refresh is a deletion; any other failure keeps the document."""
    gone = intake.acquire(
        "gone", site.page("/a", lambda v: v.reply(200, PDF) if v.number == 1 else v.reply(410))
    )
    kept = intake.acquire(
        "kept", site.page("/b", lambda v: v.reply(200, b"# B\n") if v.number == 1 else v.reply(403))
    )

    intake.queue.refresh(intake.now)
    intake.run(gone.batch or "")
    intake.run(kept.batch or "")

    assert [intake[name].state for name in ("gone", "kept")] == ["error", "error"]
    assert failed(intake["kept"]) == ("input", "E_FETCH_DENIED", 1, False)
    assert intake.living() == {"kept": sha256(b"# B\n")}


def test_a_redirect_to_a_private_address_is_refused(intake: Intake, site: Site) -> None:
    """The first address is public; the target of the redirect is never connected to."""
    board = Switchboard()
    intake.fetch = {"allow_private": False}
    intake.network = Network(
        lambda host, port: ["93.184.216.34"] if host == "files.example" else [host], board
    )
    site.page("/a.pdf", lambda v: v.reply(302, location="http://169.254.169.254/latest/meta-data"))

    artifact = intake.acquire("a", site.url("/a.pdf", "files.example"))

    assert artifact.state == "error"
    assert failed(artifact) == ("config", "E_FETCH_ADDRESS", 1, False)
    assert "fetch.allow_private" in artifact.last_error.message  # type: ignore[union-attr]
    assert board.dialled == ["93.184.216.34"]


def test_ten_gigabytes_are_refused_at_fifty_megabytes_and_memory_stays_flat(
    intake: Intake, site: Site
) -> None:
    """The size is not announced, so it is noticed while receiving."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_type="application/pdf")
        block = bytes(MIB)
        for _ in range(10_000):
            visit.send(block)

    intake.fetch = {"max_mebibytes": 50}
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    artifact = intake.acquire("a", site.page("/big.pdf", page))
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1024

    assert artifact.state == "error"
    assert failed(artifact) == ("input", "E_FETCH_TOO_LARGE", 1, False)
    assert "50 MiB" in artifact.last_error.message  # type: ignore[union-attr]
    assert intake.measures.totals().fetch_bytes < 60 * MIB
    assert grown_mib < 30
    assert list(intake.layout.partials.glob("*")) == []


def test_an_endless_slow_body_ends_at_the_total_time_limit(intake: Intake, site: Site) -> None:
    """A byte now and then prevents the idle timeout, not the total one; three attempts, then an error."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_type="application/pdf")
        while not visit.is_over.wait(0.05):
            visit.send(b"x")

    intake.fetch = {"total_timeout_s": 0.4}
    began_s = time.monotonic()
    artifact = intake.acquire("a", site.page("/slow.pdf", page))

    assert artifact.state == "error"
    assert failed(artifact) == ("timeout", "E_FETCH_TIMEOUT", 3, True)
    assert time.monotonic() - began_s < 20


def test_a_gzip_bomb_is_refused(intake: Intake, site: Site) -> None:
    """A megabyte that expands to a gigabyte."""
    bomb = gzip.compress(bytes(1024 * MIB), compresslevel=9)
    artifact = intake.acquire(
        "a", site.page("/a.html", lambda v: v.reply(200, bomb, content_encoding="gzip"))
    )

    assert artifact.state == "error"
    assert failed(artifact)[0] == "input"
    assert failed(artifact)[1] in ("E_FETCH_BOMB", "E_FETCH_TOO_LARGE")
    assert artifact.attempts == 1


HTML = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><p>Sign in</p></body></html>"


def test_html_served_as_a_pdf_is_html(intake: Intake, site: Site) -> None:
    """Content wins over headers and names."""
    url = site.page("/paper.pdf", lambda v: v.reply(200, HTML, content_type="application/pdf"))

    artifact = intake.acquire("a", url)

    assert (artifact.state, artifact.attempts, artifact.mime) == ("done", 1, "text/html")
    assert artifact.detail["declared_type"] == "application/pdf"
