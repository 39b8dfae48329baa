"""A vector cache whose file is damaged, deleted or cannot be written: never a reason for an item to fail."""

import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_assets.embedders.cache import VectorCache
from ingest_tests.embedders.cached_vectors import PLENTY, are_same, made_vectors, some_texts


def test_a_damaged_entry_is_gone_and_can_be_put_again(cache: VectorCache, cache_path: Path):
    """Its neighbours stay."""
    cache.put("model", some_texts(3), made_vectors(3))
    with sqlite3.connect(cache_path) as other:
        other.execute("UPDATE vectors SET content = zeroblob(length(content)) WHERE id = 2")
    other.close()

    assert are_same(cache.get("model", some_texts(3)), made_vectors(3)) == [True, False, True]
    cache.put("model", ["text 1"], made_vectors(3)[1:2])
    assert all(are_same(cache.get("model", some_texts(3)), made_vectors(3)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), flips=st.integers(1, 40))
def test_flipped_bits_never_give_a_wrong_vector(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flips: int
):
    """Anywhere in the file: header, trees, rows; also not after more was written into what is left."""
    path = tmp_path_factory.mktemp("flipped") / "vectors.sqlite"
    cache = VectorCache(path, PLENTY)
    cache.put("model", some_texts(60), made_vectors(60))
    cache.close()
    content, chance = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(flips):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)

    cache = VectorCache(path, PLENTY)
    for _ in range(3):
        found = cache.get("model", some_texts(60))
        assert all(
            vector is None or is_same
            for vector, is_same in zip(found, are_same(found, made_vectors(60)), strict=True)
        )
        cache.put("model", some_texts(60), made_vectors(60))
    cache.close()


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 9000])
def test_a_file_that_is_no_database_is_replaced(cache_path: Path, content: bytes):
    """A cache that cannot be read is a cache that is empty."""
    cache_path.parent.mkdir()
    cache_path.write_bytes(content)
    cache = VectorCache(cache_path, PLENTY)

    assert cache.get("model", ["a"]) == [None]
    cache.put("model", ["a"], made_vectors(1))

    assert are_same(cache.get("model", ["a"]), made_vectors(1)) == [True]
    cache.close()


@pytest.mark.parametrize("change", ["PRAGMA user_version=1", "PRAGMA application_id=7", "DROP TABLE vectors"])
def test_a_file_of_another_version_or_program_is_replaced(cache_path: Path, change: str):
    """Its vectors are embedded again."""
    old = VectorCache(cache_path, PLENTY)
    old.put("model", ["a"], made_vectors(1))
    old.close()
    with sqlite3.connect(cache_path) as other:
        other.execute(change)
    other.close()

    cache = VectorCache(cache_path, PLENTY)
    for _ in range(2):
        cache.put("model", ["b"], made_vectors(1))

    assert are_same(cache.get("model", ["b"]), made_vectors(1)) == [True]
    cache.close()


@pytest.mark.parametrize("is_whole_folder", [False, True])
def test_a_deleted_cache_file_is_made_again(cache: VectorCache, cache_path: Path, is_whole_folder: bool):
    """Else a run goes on writing into a file that no other process can find."""
    cache.put("model", ["a"], made_vectors(1))
    if is_whole_folder:
        shutil.rmtree(cache_path.parent)
    else:
        cache_path.unlink()

    cache.put("model", ["b"], made_vectors(1))

    other = VectorCache(cache_path, PLENTY)
    assert [vector is not None for vector in other.get("model", ["a", "b"])] == [False, True]
    other.close()


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """A cache is a convenience: the vectors are made again."""
    (tmp_path / "file").write_text("not a folder")
    cache = VectorCache(tmp_path / "file" / "vectors.sqlite", PLENTY)

    for _ in range(3):
        cache.put("model", ["a"], made_vectors(1))
        assert cache.get("model", ["a"]) == [None]
    cache.close()

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "vector cache" in caplog.text


def test_a_full_disk_is_told_once_and_reading_goes_on(
    cache: VectorCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """SQLite is told that no page is left."""
    cache.put("model", ["a"], made_vectors(1))
    cache.close()

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = really_connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count=1")
        return connection

    really_connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)
    for _ in range(3):
        cache.put("model", some_texts(500), made_vectors(500))

    assert are_same(cache.get("model", ["a"]), made_vectors(1)) == [True]
    assert len(caplog.records) == 1
    assert "full" in caplog.text


def test_a_locked_file_is_a_miss(
    cache: VectorCache, cache_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Another process holds it for longer than this one waits; it is kept, and works afterwards."""
    cache.put("model", ["a"], made_vectors(1))
    cache.close()
    monkeypatch.setattr("ingest_assets.embedders.cache._BUSY_SECONDS", 0.01)
    other = sqlite3.connect(cache_path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    cache.put("model", ["b"], made_vectors(1))
    other.execute("ROLLBACK")
    other.close()

    assert are_same(cache.get("model", ["a", "b"]), made_vectors(1).repeat(2, 0)) == [True, False]
    assert "locked" in caplog.text
