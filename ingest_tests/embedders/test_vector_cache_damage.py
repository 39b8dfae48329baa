"""A vector cache whose file is damaged, foreign or cannot be written: never a reason for an item to fail."""

import random
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_assets.embedders.vector_cache import VectorCache
from ingest_assets.embedders.vector_file import VectorFile
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
def test_a_file_that_is_no_database_is_put_aside(cache_path: Path, content: bytes):
    """A cache that cannot be read is a cache that is empty."""
    cache_path.parent.mkdir()
    cache_path.write_bytes(content)
    cache = VectorCache(cache_path, PLENTY)

    assert cache.get("model", ["a"]) == [None]
    cache.put("model", ["a"], made_vectors(1))

    assert are_same(cache.get("model", ["a"]), made_vectors(1)) == [True]
    cache.close()


@pytest.mark.parametrize(
    "change",
    ["PRAGMA user_version=99", "PRAGMA application_id=7", "DROP TABLE vectors", "DELETE FROM clock"],
)
def test_a_file_of_another_version_or_program_is_put_aside(cache_path: Path, change: str):
    """Whoever wants it back finds it beside the new one."""
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
    assert cache_path.with_name("vectors.sqlite.damaged").exists()
    cache.close()


def test_of_two_that_find_the_file_damaged_one_puts_it_aside(cache_path: Path):
    """The other leaves alone what has taken its place."""
    first, second = VectorFile(cache_path, PLENTY, 1.0), VectorFile(cache_path, PLENTY, 1.0)
    first.put_aside()
    new = VectorCache(cache_path, PLENTY)
    new.put("model", ["a"], made_vectors(1))

    second.put_aside()

    new.put("model", ["b"], made_vectors(1))
    assert all(
        are_same(VectorCache(cache_path, PLENTY).get("model", ["a", "b"]), made_vectors(1).repeat(2, 0))
    )
    new.close()


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
    cache: VectorCache, cache_path: Path, caplog: pytest.LogCaptureFixture
):
    """SQLite is told that no page is left."""
    cache.put("model", ["a"], made_vectors(1))
    connection = cache._file._connection  # type: ignore[union-attr]
    connection.execute("PRAGMA max_page_count=1")

    for _ in range(3):
        cache.put("model", some_texts(500), made_vectors(500))

    assert are_same(cache.get("model", ["a"]), made_vectors(1)) == [True]
    assert len(caplog.records) == 1
    assert "full" in caplog.text
