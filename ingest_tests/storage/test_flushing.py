"""Files that reach the disk while their writer goes on."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest_assets.storage import atomic as flushing
from ingest_assets.storage.atomic import MOST_WAITING, flush_soon, replacing
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
        atomic.flush_soon(path)
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
    """What was flushed, by name, in order; really flushed, too."""
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
    """The flusher is another thread, which nobody waits for."""
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_writer_that_does_not_wait_has_its_file_and_folder_flushed_soon(tmp_path: Path, flushed: list[str]):
    """The file is there at once, whole."""
    path = tmp_path / "part"

    with replacing(path, waits=False) as scratch:
        scratch.write_text("rows")

    assert path.read_text() == "rows"
    wait_until(lambda: flushed[-2:] == ["part", tmp_path.name])


def test_many_files_are_all_flushed(tmp_path: Path, flushed: list[str]):
    """More than may wait at a time: writers wait then, and nothing is forgotten."""
    paths = [tmp_path / f"part-{number}" for number in range(3 * MOST_WAITING)]
    for path in paths:
        path.write_text("rows")
        flush_soon(path)

    wait_until(
        lambda: [name for name in flushed if name.startswith("part-")] == [path.name for path in paths]
    )


def test_a_file_that_was_cleared_away_needs_no_flush(tmp_path: Path, flushed: list[str]):
    """Its rows were committed meanwhile."""
    flush_soon(tmp_path / "gone" / "part")
    wait_until(lambda: flushed[-2:] == ["part", "gone"])

    flush_soon(tmp_path)  # tells of an earlier error, if there was one
    wait_until(lambda: tmp_path.name in flushed)


def test_a_failed_flush_is_told_to_the_next_writer_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushed: list[str]
):
    """A dying disk must not go unnoticed."""
    path = tmp_path / "part"
    path.write_text("rows")

    def failing(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing)
        flush_soon(path)
        wait_until(lambda: tmp_path.name in flushed)

    with pytest.raises(OSError, match="Input/output error"):
        _keep_flushing(path)

    flush_soon(path)


def _keep_flushing(path: Path) -> None:
    """An error is noted a moment after the flush."""
    for _ in range(100):
        flush_soon(path)
        time.sleep(0.01)


def test_a_fork_flushes_for_itself(child: Child, tmp_path: Path):
    """Threads stay behind in the parent; waiting for one of those would take for ever."""
    process = child(FORKING, tmp_path / "part")

    assert process.stdout.readline().strip() == "flushed"
    assert process.wait(timeout=30) == 0
