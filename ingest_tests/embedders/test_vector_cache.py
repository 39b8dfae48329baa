"""The vector cache: exact, limited in size, shared, and never the reason for a failed item."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_assets.embedders.cache import VectorCache
from ingest_tests.conftest import clean_environment
from ingest_tests.embedders.cached_vectors import LITTLE, PLENTY, are_same, made_vectors, some_texts


def test_vectors_are_returned_bit_for_bit(cache: VectorCache):
    """Also NaN, infinities and negative zero."""
    odd = np.array([[0.0, -0.0, np.inf, 1e-45], [np.nan, -np.inf, 1.5, 3.4e38]], dtype=np.float32)

    cache.put("model", ["a", "b"], odd)

    assert are_same(cache.get("model", ["b", "a"]), odd[::-1]) == [True, True]


def test_models_do_not_share_vectors(cache: VectorCache):
    """Also if model name and text run together to the same string."""
    cache.put("model", ["a text"], made_vectors(1))

    assert cache.get("model a", ["text"]) == [None]
    assert cache.get("other", ["a text"]) == [None]


def test_any_text_is_a_key(cache: VectorCache):
    """Empty, repeated in one call, with lone surrogates or NUL characters."""
    texts = ["", "\ud800", "a\0b", "a", "\ud800"]

    cache.put("model", texts, np.arange(5, dtype=np.float32)[:, None])

    assert [float(v[0]) for v in cache.get("model", texts) if v is not None] == [0, 4, 2, 3, 4]


def test_a_vector_per_text_is_required(cache: VectorCache):
    """A wrong count is an error of the caller, not of the disk."""
    with pytest.raises(ValueError):
        cache.put("model", ["a", "b"], made_vectors(1))


def test_vectors_outlive_the_process_that_made_them(cache_path: Path):
    """A second cache object on the file stands for the next run."""
    first = VectorCache(cache_path, PLENTY)
    first.put("model", some_texts(700), made_vectors(700))
    first.close()
    first.close()

    assert all(are_same(VectorCache(cache_path, PLENTY).get("model", some_texts(700)), made_vectors(700)))


def test_the_oldest_are_deleted_first(cache_path: Path):
    """The most recent writes stay."""
    cache = VectorCache(cache_path, LITTLE)
    cache.put("model", some_texts(400), made_vectors(400))

    cache.put("model", [f"new {index}" for index in range(300)], made_vectors(300, seed=1))

    is_there = [vector is not None for vector in cache.get("model", some_texts(400))]
    assert False in is_there
    assert is_there == sorted(is_there)
    cache.close()
    assert cache_path.stat().st_size <= LITTLE


def test_a_lowered_limit_shrinks_the_file(cache_path: Path):
    """The limit is about disk space, not about a counter."""
    large = VectorCache(cache_path, PLENTY)
    large.put("model", some_texts(3000), made_vectors(3000))
    large.close()
    before = cache_path.stat().st_size

    small = VectorCache(cache_path, LITTLE)
    small.put("model", ["one more"], made_vectors(1, seed=1))
    small.close()

    assert before > 4 * LITTLE
    assert cache_path.stat().st_size <= LITTLE
    found = VectorCache(cache_path, LITTLE).get("model", ["one more"])
    assert are_same(found, made_vectors(1, seed=1)) == [True]


def test_a_put_larger_than_the_limit_keeps_the_limit(cache_path: Path):
    """One huge document must not fill the disk."""
    cache = VectorCache(cache_path, LITTLE)
    cache.put("model", some_texts(9000), made_vectors(9000))
    cache.put("model", ["last"], made_vectors(1))
    cache.close()

    assert cache_path.stat().st_size <= LITTLE
    assert are_same(VectorCache(cache_path, LITTLE).get("model", ["last"]), made_vectors(1)) == [True]


_SOME = st.lists(st.integers(0, 900).map(str), min_size=1, max_size=300)
_HISTORY = st.lists(st.tuples(st.sampled_from(["put", "get", "reopen"]), _SOME), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@given(history=_HISTORY, bound=st.sampled_from([LITTLE, PLENTY]))
def test_any_history_is_that_of_a_dict_that_forgets_its_oldest(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, list[str]]], bound: int
):
    """A deleted vector was written before all that are left."""
    path = tmp_path_factory.mktemp("history") / "vectors.sqlite"
    cache, model = VectorCache(path, bound), dict[str, np.ndarray]()
    for number, (act, texts) in enumerate(history):
        if act == "put":
            vectors = made_vectors(len(texts), seed=number)
            cache.put("model", texts, vectors)
            for text, vector in zip(texts, vectors, strict=True):
                model.pop(text, None)
                model[text] = vector
        elif act == "get":
            for text, found in zip(texts, cache.get("model", texts), strict=True):
                assert found is None or found.tobytes() == model[text].tobytes()
        else:
            cache.close()
            cache = VectorCache(path, bound)

    is_there = [vector is not None for vector in cache.get("model", list(model))]
    cache.close()

    assert is_there == sorted(is_there)
    assert all(is_there) or bound == LITTLE
    assert not path.exists() or path.stat().st_size <= bound


def test_a_damaged_entry_is_a_miss_and_can_be_replaced(cache: VectorCache, cache_path: Path):
    """Other entries stay."""
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
    """Anywhere in the file, also after further writes."""
    path = tmp_path_factory.mktemp("flipped") / "vectors.sqlite"
    cache = VectorCache(path, PLENTY)
    cache.put("model", some_texts(60), made_vectors(60))
    cache.close()
    content, randomness = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(flips):
        content[randomness.randrange(len(content))] ^= 1 << randomness.randrange(8)
    path.write_bytes(content)

    cache = VectorCache(path, PLENTY)
    for _ in range(3):
        vectors = cache.get("model", some_texts(60))
        assert all(
            vector is None or is_same
            for vector, is_same in zip(vectors, are_same(vectors, made_vectors(60)), strict=True)
        )
        cache.put("model", some_texts(60), made_vectors(60))
    cache.close()


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 9000])
def test_a_file_that_is_not_a_database_is_replaced(cache_path: Path, content: bytes):
    """An unreadable cache counts as empty."""
    cache_path.parent.mkdir()
    cache_path.write_bytes(content)
    cache = VectorCache(cache_path, PLENTY)

    assert cache.get("model", ["a"]) == [None]
    cache.put("model", ["a"], made_vectors(1))

    assert are_same(cache.get("model", ["a"]), made_vectors(1)) == [True]
    cache.close()


@pytest.mark.parametrize("change", ["PRAGMA user_version=1", "PRAGMA application_id=7", "DROP TABLE vectors"])
def test_a_file_of_another_version_or_program_is_replaced(cache_path: Path, change: str):
    """Its vectors are computed again."""
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
def test_a_deleted_cache_file_is_recreated(cache: VectorCache, cache_path: Path, is_whole_folder: bool):
    """Otherwise a run would write into a file that no other process can find."""
    cache.put("model", ["a"], made_vectors(1))
    if is_whole_folder:
        shutil.rmtree(cache_path.parent)
    else:
        cache_path.unlink()

    cache.put("model", ["b"], made_vectors(1))

    other = VectorCache(cache_path, PLENTY)
    assert [vector is not None for vector in other.get("model", ["a", "b"])] == [False, True]
    other.close()


def test_a_folder_that_is_not_writable_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """The vectors are computed again."""
    (tmp_path / "file").write_text("not a folder")
    cache = VectorCache(tmp_path / "file" / "vectors.sqlite", PLENTY)

    for _ in range(3):
        cache.put("model", ["a"], made_vectors(1))
        assert cache.get("model", ["a"]) == [None]
    cache.close()

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "vector cache" in caplog.text


def test_a_full_disk_is_logged_once_and_reading_continues(
    cache: VectorCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """SQLite gets no further page."""
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
    """After another process has locked it for too long; it is kept, and works afterwards."""
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


def test_threads_share_a_cache(cache: VectorCache):
    """Each finds the vectors of the others."""

    def put_and_get(number: int) -> bool:
        texts = [f"{number} {index}" for index in range(40)]
        cache.put("model", texts, made_vectors(40, seed=number))
        return all(are_same(cache.get("model", texts), made_vectors(40, seed=number)))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(put_and_get, range(24)))


_WRITER = """
import sys
from pathlib import Path
import numpy as np
from ingest_assets.embedders.cache import VectorCache

cache, name = VectorCache(Path(sys.argv[1]), int(sys.argv[2])), sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
rounds = int(sys.argv[4])
for number in range(rounds):
    texts = [f"{name} {number} {index}" for index in range(20)]
    vectors = np.full((20, 384), number, dtype=np.float32)
    cache.put("model", texts, vectors)
    found = cache.get("model", texts)
    assert all(v is not None and (v == number).all() for v in found), (name, number)
cache.close()
"""


def _writer(path: Path, name: str, rounds: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path), str(PLENTY), name, str(rounds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_processes_share_a_file(cache_path: Path):
    """Two processes create it at the same time and find each other's vectors."""
    writers = [_writer(cache_path, name, 40) for name in ("first", "second")]
    for writer in writers:
        _go(writer)
    assert [writer.wait(60) for writer in writers] == [0, 0]

    cache = VectorCache(cache_path, PLENTY)
    for name in ("first", "second"):
        texts = [f"{name} {number} {index}" for number in range(40) for index in range(20)]
        assert None not in [v if v is None else 1 for v in cache.get("model", texts)]
    cache.close()


def test_a_killed_process_leaves_a_file_that_works(cache_path: Path):
    """Everything that it had written is there and valid."""
    writer = _writer(cache_path, "killed", 100_000)
    _go(writer)
    reader, count = VectorCache(cache_path, PLENTY), 0
    while count < 5:
        count = sum(v is not None for v in reader.get("model", [f"killed {n} 0" for n in range(50)]))
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()

    after = reader.get("model", [f"killed {n} 0" for n in range(50)])
    assert sum(v is not None for v in after) >= count
    assert all(v is None or (v == number).all() for number, v in enumerate(after))
    reader.put("model", ["after"], made_vectors(1))
    assert are_same(reader.get("model", ["after"]), made_vectors(1)) == [True]
    reader.close()
