"""Files that are still being written, and scans with a time limit."""

import os

from ingest_tests.intake.conftest import NOW, Watched


def test_a_young_file_waits(watched: Watched) -> None:
    """A file that is still being copied is incomplete."""
    path = watched.write("a.md", "half")
    os.utime(path, (NOW, NOW))
    watched.now = NOW + 1

    early = watched.scan(settle_seconds=2)
    watched.now = NOW + 3
    late = watched.scan(settle_seconds=2)

    assert (early.waiting, early.new) == (1, 0)
    assert (late.waiting, late.new) == (0, 1)


def test_a_known_file_that_is_being_written_stays_as_it_was(watched: Watched) -> None:
    """It waits; it is not deleted, and its old hash stays."""
    watched.write("a.md", "one")
    watched.scan()
    before = watched.known()
    path = watched.write("a.md", "half of two")
    os.utime(path, (NOW, NOW))

    report = watched.scan(settle_seconds=2)

    assert (report.waiting, report.deleted) == (1, 0)
    assert watched.known() == before


def test_a_file_dated_in_the_future_is_entered(watched: Watched) -> None:
    """A camera with a wrong clock, or an archive from another time zone, must not hide a document."""
    path = watched.write("a.md")
    os.utime(path, (NOW + 86_400, NOW + 86_400))

    report = watched.scan()

    assert (report.new, report.waiting) == (1, 0)


def test_files_beyond_the_time_limit_are_entered_later(watched: Watched) -> None:
    """None is lost, deleted or entered twice."""
    for name in ("a.md", "b.md", "c.md"):
        watched.write(name)

    short = watched.scan(budget_seconds=1e-9)
    rest = watched.scan()

    assert short.new + short.waiting == 3
    assert short.waiting >= 1
    assert short.deleted == rest.deleted == 0
    assert short.new + rest.new == 3
    assert set(watched.living()) == {"a.md", "b.md", "c.md"}


def test_every_scan_makes_progress_however_short_its_time_limit(watched: Watched) -> None:
    """Otherwise a folder that takes longer to list than the limit allows would never be entered."""
    for name in ("a.md", "b.md"):
        watched.write(name)

    for _ in range(2):
        watched.scan(budget_seconds=1e-9)

    assert set(watched.living()) == {"a.md", "b.md"}


def test_an_exceeded_time_limit_does_not_hide_deletions(watched: Watched) -> None:
    """Deletions and unchanged files need no hashing."""
    watched.write("a.md")
    gone = watched.write("b.md")
    watched.scan()
    gone.unlink()

    report = watched.scan(budget_seconds=1e-9)

    assert (report.unchanged, report.deleted, report.waiting) == (1, 1, 0)
