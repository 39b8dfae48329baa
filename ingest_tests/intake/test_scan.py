"""New, changed, deleted and restored files, and what must not count as deleted."""

import hashlib
import os
from pathlib import Path

import pytest

from ingest_assets.core.identity import hash_file
from ingest_tests.intake.conftest import Exclusions, Watched, counts


def sha(text: str) -> str:
    """Return the hash of a file with this text."""
    return hashlib.sha256(text.encode()).hexdigest()


def test_new_files_are_entered_with_their_hash_and_a_batch(watched: Watched) -> None:
    """Ids have source and path; sequence numbers follow the order of the scan."""
    watched.write("b.md", "two")
    watched.write("sub/a.md", "one")

    report = watched.scan()

    known = watched.known()
    assert counts(report) == {"new": 2}
    assert report.batches == {"2024-05-01-0001"}
    assert known["sub/a.md"].doc_id == "docs:sub/a.md"
    assert watched.living() == {"b.md": sha("two"), "sub/a.md": sha("one")}
    assert [document.seq for document in watched.ledger.documents()] == [1, 2]


def test_a_second_scan_finds_nothing(watched: Watched) -> None:
    """And no batch gets a new revision."""
    watched.write("a.md")
    watched.scan()
    before = watched.ledger.batches()

    report = watched.scan()

    assert counts(report) == {"unchanged": 1}
    assert report.batches == set()
    assert watched.ledger.batches() == before


def test_a_changed_file_keeps_its_batch_and_number(watched: Watched) -> None:
    """Its batch runs again."""
    watched.write("a.md", "one")
    watched.scan()
    before = watched.known()["a.md"]
    watched.write("a.md", "two")

    report = watched.scan()

    after = watched.known()["a.md"]
    assert counts(report) == {"changed": 1}
    assert report.batches == {before.batch}
    assert after.content_hash == sha("two")
    assert (after.batch, after.seq) == (before.batch, before.seq)
    assert watched.ledger.batches()[before.batch] > 1


def test_a_touched_file_is_not_changed(watched: Watched) -> None:
    """Same content with a new time: the hash decides."""
    path = watched.write("a.md")
    watched.scan()
    before = watched.ledger.batches()
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 5_000_000_000))

    report = watched.scan()

    assert counts(report) == {"unchanged": 1}
    assert report.batches == set()
    assert watched.ledger.batches() == before
    assert watched.known()["a.md"].mtime_ns == path.stat().st_mtime_ns


def test_a_deleted_file_is_marked_and_its_batch_runs_again(watched: Watched) -> None:
    """The row stays, so that a restored document keeps its batch."""
    path = watched.write("a.md")
    watched.write("b.md")
    watched.scan()
    path.unlink()

    report = watched.scan()

    assert counts(report) == {"deleted": 1, "unchanged": 1}
    assert report.batches == {"2024-05-01-0001"}
    assert watched.known()["a.md"].deleted_at == watched.now
    assert set(watched.living()) == {"b.md"}
    assert counts(watched.scan()) == {"unchanged": 1}


def test_a_restored_file_returns_to_its_batch(watched: Watched) -> None:
    """Even if neither time nor content differ from before."""
    path = watched.write("a.md", "one")
    watched.scan()
    before, kept = watched.known()["a.md"], path.rename(path.with_suffix(".kept"))
    watched.scan(Exclusions(("*.kept",)))
    kept.rename(path)

    report = watched.scan()

    after = watched.known()["a.md"]
    assert counts(report) == {"restored": 1}
    assert report.batches == {before.batch}
    assert after == before


def test_a_missing_folder_deletes_nothing(watched: Watched) -> None:
    """It may be an unmounted network share."""
    watched.write("a.md")
    watched.scan()
    before = (watched.known(), watched.ledger.batches())
    away = watched.folder.rename(watched.folder.with_name("away"))

    report = watched.scan()

    assert counts(report) == {}
    assert (watched.known(), watched.ledger.batches()) == before
    assert [path for _, path, _ in watched.ledger.problems()] == [str(watched.folder)]
    away.rename(watched.folder)
    assert counts(watched.scan()) == {"unchanged": 1}
    assert watched.ledger.problems() == []


def test_a_document_in_a_missing_folder_is_not_seen(watched: Watched) -> None:
    """`last_seen` is when the file existed, not when it was last checked."""
    watched.write("a.md")
    watched.scan()
    watched.folder.rename(watched.folder.with_name("away"))
    watched.now += 3600

    watched.scan()

    assert watched.last_seen("a.md") == watched.now - 3600


def test_last_seen_is_precise_to_the_hour(watched: Watched) -> None:
    """A higher precision would need a write for every file in every scan."""
    watched.write("a.md")
    watched.scan()
    seen = []
    for seconds in (60, 3540, 60):
        watched.now += seconds
        watched.scan()
        seen.append(watched.now - watched.last_seen("a.md"))

    assert seen == [60, 0, 60]


def test_a_file_that_vanishes_between_listing_and_reading_is_left_for_the_next_scan(
    watched: Watched,
) -> None:
    """It is neither a failure nor a document."""
    path = watched.write("a.md")
    watched.write("b.md")

    def clock() -> float:  # called before each file is hashed
        path.unlink(missing_ok=True)
        return watched.now

    report = watched.scan(clock=clock)

    assert set(watched.living()) == {"b.md"}
    assert report.problems == []


def test_a_known_file_that_cannot_be_read_is_reported_and_kept(watched: Watched) -> None:
    """It is not deleted, and its known hash stays."""
    path = watched.write("a.md", "one")
    watched.scan()
    watched.write("a.md", "three")

    def clock() -> float:
        if path.is_file():
            path.unlink()
            path.mkdir()
        return watched.now

    report = watched.scan(clock=clock)

    assert counts(report) == {}
    assert watched.living() == {"a.md": sha("one")}
    assert watched.ledger.problems() == [("docs", "a.md", report.problems[0][1].reason)]
    assert "cannot be read" in report.problems[0][1].reason


def test_a_preview_reports_like_a_scan_and_writes_nothing(watched: Watched) -> None:
    """`ingest plan` must have no side effects."""
    watched.write("same.md")
    watched.write("changed.md", "one")
    gone = watched.write("gone.md")
    watched.scan()
    watched.write("changed.md", "two")
    watched.write("new.md")
    gone.unlink()
    before = (watched.known(), watched.ledger.batches())

    preview = watched.preview()

    assert counts(preview) == {"new": 1, "changed": 1, "deleted": 1, "unchanged": 1}
    assert (watched.known(), watched.ledger.batches()) == before
    assert watched.scan() == preview


@pytest.mark.parametrize("size", [0, 1, 1024 * 1024, 1024 * 1024 + 1])
def test_a_hash_covers_all_bytes(tmp_path: Path, size: int) -> None:
    """Also of an empty file, and beyond one block."""
    content = b"\x00\xff" * (size // 2) + b"x" * (size % 2)
    (tmp_path / "f").write_bytes(content)

    assert hash_file(tmp_path / "f", 4) == (hashlib.sha256(content).hexdigest(), content[:4])
