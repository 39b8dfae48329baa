"""Files that are flushed in the background."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest_assets.storage import atomic as flushing
from ingest_assets.storage.atomic import MAX_PENDING_FLUSHES, flush_later, replacing
from ingest_tests.storage.conftest import Child

FORKING = """
import os, sys, time
from pathlib import Path
from ingest_assets.storage import atomic
flushed, really = [], atomic.flush
def noting(path):
    really(path)
    flushed.append(path)
atomic.flush = noting
def flush(number):
    for _ in range(number):
        atomic.flush_later(path)
    while flushed.count(path) < number:
        time.sleep(0.01)
path = Path(sys.argv[1])
path.write_text("before")
flush(1)
flushed.clear()
if child := os.fork():
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
flush(100)
print("flushed", flush=True)
"""


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of flushed files, in order."""
    names: list[str] = []
    really = flushing.flush

    def noting(path: Path) -> None:
        try:
            really(path)
        finally:
            names.append(path.name)

    monkeypatch.setattr(flushing, "flush", noting)
    return names


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for the thread that flushes."""
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_writer_that_does_not_wait_has_its_file_and_folder_flushed_soon(tmp_path: Path, flushed: list[str]):
    """The complete file exists at once."""
    path = tmp_path / "part"

    with replacing(path, waits=False) as scratch:
        scratch.write_text("rows")

    assert path.read_text() == "rows"
    wait_until(lambda: flushed[-2:] == ["part", tmp_path.name])


def test_many_files_are_all_flushed(tmp_path: Path, flushed: list[str]):
    """Writers wait if too many flushes are pending, and no file is skipped."""
    paths = [tmp_path / f"part-{number}" for number in range(3 * MAX_PENDING_FLUSHES)]
    for path in paths:
        path.write_text("rows")
        flush_later(path)

    wait_until(
        lambda: [name for name in flushed if name.startswith("part-")] == [path.name for path in paths]
    )


def test_a_removed_file_needs_no_flush(tmp_path: Path, flushed: list[str]):
    """Its rows have been committed."""
    flush_later(tmp_path / "gone" / "part")
    wait_until(lambda: flushed[-2:] == ["part", "gone"])

    flush_later(tmp_path)  # raises an earlier error, if there was one
    wait_until(lambda: tmp_path.name in flushed)


def test_the_next_writer_raises_the_error_of_a_failed_flush_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushed: list[str]
):
    """A failing disk must be noticed."""
    path = tmp_path / "part"
    path.write_text("rows")

    def failing(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing)
        flush_later(path)
        wait_until(lambda: tmp_path.name in flushed)

    with pytest.raises(OSError, match="Input/output error"):
        _keep_flushing(path)

    flush_later(path)


def _keep_flushing(path: Path) -> None:
    """Flush until an error is raised, which happens shortly after the flush."""
    for _ in range(100):
        flush_later(path)
        time.sleep(0.01)


def test_a_forked_process_starts_its_own_flusher(child: Child, tmp_path: Path):
    """Threads do not survive a fork, so the child must not wait for the parent's thread."""
    process = child(FORKING, tmp_path / "part")

    assert process.stdout.readline().strip() == "flushed"
    assert process.wait(timeout=30) == 0
