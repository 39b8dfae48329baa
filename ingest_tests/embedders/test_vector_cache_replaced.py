"""A vector cache whose file is deleted or exchanged while a run has it open."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from ingest_assets.embedders.vector_cache import VectorCache
from ingest_tests.embedders.cached_vectors import PLENTY, are_same, made_vectors


def _kept(path: Path, *texts: str) -> list[bool]:
    """Which texts another process would find in the file."""
    other = VectorCache(path, PLENTY)
    found = [vector is not None for vector in other.get("model", texts)]
    other.close()
    return found


@pytest.mark.parametrize("is_whole_folder", [False, True])
def test_a_deleted_cache_file_is_made_again(cache: VectorCache, cache_path: Path, is_whole_folder: bool):
    """Else a run goes on writing into a file that nobody can find any more."""
    cache.put("model", ["a"], made_vectors(1))
    if is_whole_folder:
        shutil.rmtree(cache_path.parent)
    else:
        cache_path.unlink()

    cache.put("model", ["b"], made_vectors(1))

    assert _kept(cache_path, "a", "b") == [False, True]
    assert are_same(cache.get("model", ["b"]), made_vectors(1)) == [True]


def test_a_cache_file_that_another_took_the_place_of_is_left(
    cache: VectorCache, cache_path: Path, tmp_path: Path
):
    """What is read and written is what stands there now."""
    cache.put("model", ["a"], made_vectors(1))
    other = VectorCache(tmp_path / "other.sqlite", PLENTY)
    other.put("model", ["c"], made_vectors(1))
    other.close()
    for suffix in ("-wal", "-shm"):
        cache_path.with_name(cache_path.name + suffix).unlink(missing_ok=True)
    (tmp_path / "other.sqlite").replace(cache_path)

    assert are_same(cache.get("model", ["c"]), made_vectors(1)) == [True]
    cache.put("model", ["b"], made_vectors(1))

    assert _kept(cache_path, "a", "b", "c") == [False, True, True]


def test_whoever_still_writes_into_a_deleted_file_harms_no_new_one(cache: VectorCache, cache_path: Path):
    """The files beside it, which SQLite finds by name, are not shared with the old."""
    cache.put("model", ["a"], made_vectors(1))
    behind = cache._file._connection  # type: ignore[union-attr]
    cache_path.unlink()
    new = VectorCache(cache_path, PLENTY)
    new.put("model", ["b"], made_vectors(1))
    for tick in range(50):
        behind.execute("UPDATE clock SET tick = ?", (tick,))

    new.put("model", ["c"], made_vectors(1))
    cache.close()

    assert all(are_same(new.get("model", ["b", "c"]), made_vectors(1).repeat(2, 0)))
    new.close()
    with sqlite3.connect(cache_path) as looked_at:
        assert looked_at.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    looked_at.close()
