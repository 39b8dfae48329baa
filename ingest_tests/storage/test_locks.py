"""Locks between real processes: readers share, the writer is alone, the dead let go."""

import subprocess
import threading
from pathlib import Path

import pytest

from ingest_assets.storage.locks import FileLock, HeldLocks
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


def said(process: subprocess.Popen[str]) -> str:
    """The next line of a process."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    """Let a process go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize(
    ("held", "wanted", "free"),
    [
        ("shared", "shared", True),
        ("shared", "exclusive", False),
        ("exclusive", "shared", False),
        ("exclusive", "exclusive", False),
    ],
)
def test_only_readers_share(tmp_path: Path, child: Child, held: str, wanted: str, free: bool) -> None:
    """Two processes, every pair of modes."""
    path = tmp_path / "locks" / "table.lock"
    holder = child(HOLDER, path, held)
    assert said(holder) == "held"
    lock = FileLock(path, shared=wanted == "shared")

    taken = lock.try_acquire()
    lock.release()

    assert taken is free


def test_a_writer_waits_for_the_reader_and_then_has_the_lock(tmp_path: Path, child: Child) -> None:
    """It waits in the kernel and wakes when the other lets go."""
    path = tmp_path / "table.lock"
    reader = child(HOLDER, path, "shared")
    assert said(reader) == "held"
    lock = FileLock(path)
    waiter = threading.Thread(target=lock.acquire, daemon=True)

    waiter.start()
    waiter.join(0.2)
    waited = waiter.is_alive()
    tell(reader)
    assert said(reader) == "released"
    waiter.join(10)

    assert waited
    assert not waiter.is_alive()
    assert not FileLock(path).try_acquire()
    lock.release()


def test_a_killed_holder_lets_go(tmp_path: Path, child: Child) -> None:
    """No lock outlives its process, so none has to be cleaned up by hand."""
    path = tmp_path / "table.lock"
    holder = child(HOLDER, path, "exclusive")
    assert said(holder) == "held"
    lock = FileLock(path)
    assert not lock.try_acquire()

    holder.kill()
    holder.wait()

    assert lock.try_acquire()
    lock.release()


def test_a_lock_can_be_taken_again_after_it_was_let_go(tmp_path: Path) -> None:
    """Letting go twice is harmless."""
    lock = FileLock(tmp_path / "table.lock")

    for _ in range(2):
        assert lock.try_acquire()
        lock.release()
        lock.release()


def test_several_locks_are_held_together_and_let_go_together(tmp_path: Path) -> None:
    """A stage reads one table and writes another."""
    above, own = tmp_path / "above.lock", tmp_path / "own.lock"
    held = HeldLocks(shared=[above], exclusive=[own])

    held.acquire()
    during = [FileLock(above, shared=True).try_acquire(), FileLock(above).try_acquire()]
    during.append(FileLock(own, shared=True).try_acquire())
    held.release()

    assert during == [True, False, False]
    assert FileLock(own).try_acquire()


def test_when_one_of_several_locks_cannot_be_had_none_stays_held(tmp_path: Path) -> None:
    """A half-taken set would block everybody until the process ends."""
    above = tmp_path / "above.lock"
    (tmp_path / "not-a-folder").touch()
    held = HeldLocks(shared=[above], exclusive=[tmp_path / "not-a-folder" / "own.lock"])

    with pytest.raises(OSError):
        held.acquire()

    assert FileLock(above).try_acquire()


def test_who_has_to_wait_says_for_what(tmp_path: Path) -> None:
    """A command that stands still must say why."""
    path, waited = tmp_path / "table.lock", []
    other = FileLock(path)
    other.acquire()

    def let_go(held: Path) -> None:
        waited.append(held)
        other.release()

    locks = HeldLocks(shared=[], exclusive=[path])
    locks.acquire(let_go)
    locks.release()

    assert waited == [path]
