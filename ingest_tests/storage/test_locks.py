"""Locks between real processes: readers share, writers are exclusive, the end of a process releases."""

import subprocess
import threading
from pathlib import Path

import pytest

from ingest_assets.storage.locks import FileLock, LockGroup
from ingest_tests.storage.conftest import Child

HOLDER = """
import sys
from pathlib import Path
from ingest_assets.storage.locks import FileLock
lock = FileLock(Path(sys.argv[1]), shared=sys.argv[2] == "shared")
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
sys.stdin.readline()
"""


def read_line(process: subprocess.Popen[str]) -> str:
    """Return the next line of a process's output."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def resume(process: subprocess.Popen[str]) -> None:
    """Let a process continue."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize(
    ("held", "requested", "free"),
    [
        ("shared", "shared", True),
        ("shared", "exclusive", False),
        ("exclusive", "shared", False),
        ("exclusive", "exclusive", False),
    ],
)
def test_only_readers_share(tmp_path: Path, child: Child, held: str, requested: str, free: bool) -> None:
    """Two processes, every pair of modes."""
    path = tmp_path / "locks" / "table.lock"
    holder = child(HOLDER, path, held)
    assert read_line(holder) == "held"
    lock = FileLock(path, shared=requested == "shared")

    taken = lock.try_acquire()
    lock.release()

    assert taken is free


def test_a_writer_waits_for_the_reader_and_then_has_the_lock(tmp_path: Path, child: Child) -> None:
    """It waits in the kernel until the reader releases the lock."""
    path = tmp_path / "table.lock"
    reader = child(HOLDER, path, "shared")
    assert read_line(reader) == "held"
    lock = FileLock(path)
    waiter = threading.Thread(target=lock.acquire, daemon=True)

    waiter.start()
    waiter.join(0.2)
    waited = waiter.is_alive()
    resume(reader)
    assert read_line(reader) == "released"
    waiter.join(10)

    assert waited
    assert not waiter.is_alive()
    assert not FileLock(path).try_acquire()
    lock.release()


def test_the_lock_of_a_killed_process_is_released(tmp_path: Path, child: Child) -> None:
    """Locks never have to be removed by hand."""
    path = tmp_path / "table.lock"
    holder = child(HOLDER, path, "exclusive")
    assert read_line(holder) == "held"
    lock = FileLock(path)
    assert not lock.try_acquire()

    holder.kill()
    holder.wait()

    assert lock.try_acquire()
    lock.release()


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    """Releasing it twice is safe."""
    lock = FileLock(tmp_path / "table.lock")

    for _ in range(2):
        assert lock.try_acquire()
        lock.release()
        lock.release()


def test_a_group_of_locks_is_taken_and_released_together(tmp_path: Path) -> None:
    """A stage reads one table and writes another."""
    read, written = tmp_path / "read.lock", tmp_path / "written.lock"
    group = LockGroup(shared=[read], exclusive=[written])

    group.acquire()
    during = [FileLock(read, shared=True).try_acquire(), FileLock(read).try_acquire()]
    during.append(FileLock(written, shared=True).try_acquire())
    group.release()

    assert during == [True, False, False]
    assert FileLock(written).try_acquire()


def test_if_one_lock_of_a_group_fails_all_are_released(tmp_path: Path) -> None:
    """Other processes would wait for the rest until this process ends."""
    read = tmp_path / "read.lock"
    (tmp_path / "not-a-folder").touch()
    group = LockGroup(shared=[read], exclusive=[tmp_path / "not-a-folder" / "written.lock"])

    with pytest.raises(OSError):
        group.acquire()

    assert FileLock(read).try_acquire()


def test_a_group_reports_the_lock_that_it_waits_for(tmp_path: Path) -> None:
    """A waiting command must say why."""
    path, waited = tmp_path / "table.lock", []
    other = FileLock(path)
    other.acquire()

    def release_other(busy: Path) -> None:
        waited.append(busy)
        other.release()

    locks = LockGroup(shared=[], exclusive=[path])
    locks.acquire(release_other)
    locks.release()

    assert waited == [path]
