"""The vector cache: exact, bounded, shared, and never a reason for an item to fail."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_assets.embedders.vector_cache import VectorCache
from ingest_assets.embedders.vector_file import VectorFile
from ingest_tests.conftest import clean_environment

PLENTY = 64 * 1024 * 1024
LITTLE = 1024 * 1024
DIM = 384


def _vectors(number: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((number, DIM)).astype(np.float32)


def _texts(number: int) -> list[str]:
    return [f"text {index}" for index in range(number)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "vectors.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[VectorCache]:
    opened = VectorCache(path, PLENTY)
    yield opened
    opened.close()


def _same(found: list[np.ndarray | None], expected: np.ndarray) -> list[bool]:
    return [
        vector is not None and vector.tobytes() == row.tobytes()
        for vector, row in zip(found, expected, strict=True)
    ]


def test_what_comes_back_is_bit_for_bit_what_was_put(cache: VectorCache):
    """Also the numbers that compare in odd ways."""
    odd = np.array([[0.0, -0.0, np.inf, 1e-45], [np.nan, -np.inf, 1.5, 3.4e38]], dtype=np.float32)

    cache.put("model", ["a", "b"], odd)

    assert _same(cache.get("model", ["b", "a"]), odd[::-1]) == [True, True]


def test_models_do_not_share_vectors(cache: VectorCache):
    """The same text means something else to another model, also when names run together."""
    cache.put("model", ["a text"], _vectors(1))

    assert cache.get("model a", ["text"]) == [None]
    assert cache.get("other", ["a text"]) == [None]


def test_any_text_is_a_key(cache: VectorCache):
    """Empty, twice in one call, with lone surrogates or zeros."""
    texts = ["", "\ud800", "a\0b", "a", "\ud800"]

    cache.put("model", texts, np.arange(5, dtype=np.float32)[:, None])

    assert [float(v[0]) for v in cache.get("model", texts) if v is not None] == [0, 4, 2, 3, 4]


def test_a_vector_per_text_is_required(cache: VectorCache):
    """A count that does not fit is a mistake of the caller's, not of the disk's."""
    with pytest.raises(ValueError):
        cache.put("model", ["a", "b"], _vectors(1))


def test_vectors_outlive_the_process_that_made_them(path: Path):
    """A second cache on the same file stands for the next run."""
    first = VectorCache(path, PLENTY)
    first.put("model", _texts(700), _vectors(700))
    first.close()
    first.close()

    assert all(_same(VectorCache(path, PLENTY).get("model", _texts(700)), _vectors(700)))


def test_the_least_recently_used_leave_first(path: Path):
    """What was read lately stays though it was written first."""
    cache = VectorCache(path, LITTLE)
    cache.put("model", _texts(400), _vectors(400))
    assert all(_same(cache.get("model", _texts(50)), _vectors(50)))

    cache.put("model", [f"new {index}" for index in range(300)], _vectors(300, seed=1))

    assert all(_same(cache.get("model", _texts(50)), _vectors(50)))
    kept = [vector is not None for vector in cache.get("model", _texts(400))[50:]]
    assert False in kept
    assert kept == sorted(kept)
    cache.close()
    assert path.stat().st_size <= LITTLE


def test_a_lowered_bound_shrinks_the_file(path: Path):
    """The setting is about the disk, not about a counter."""
    large = VectorCache(path, PLENTY)
    large.put("model", _texts(3000), _vectors(3000))
    large.close()
    before = path.stat().st_size

    small = VectorCache(path, LITTLE)
    small.put("model", ["one more"], _vectors(1, seed=1))
    small.close()

    assert before > 4 * LITTLE
    assert path.stat().st_size <= LITTLE
    assert _same(VectorCache(path, LITTLE).get("model", ["one more"]), _vectors(1, seed=1)) == [True]


def test_a_put_that_is_larger_than_the_bound_keeps_the_bound(path: Path):
    """One huge document may not fill the disk."""
    cache = VectorCache(path, LITTLE)
    cache.put("model", _texts(9000), _vectors(9000))
    cache.put("model", ["last"], _vectors(1))
    cache.close()

    assert path.stat().st_size <= LITTLE
    assert _same(VectorCache(path, LITTLE).get("model", ["last"]), _vectors(1)) == [True]


_SOME = st.lists(st.integers(0, 900).map(str), min_size=1, max_size=300)
_HISTORY = st.lists(st.tuples(st.sampled_from(["put", "get", "reopen"]), _SOME), min_size=1, max_size=12)


class _Dict:
    """What the cache should do, in plain Python: vectors in order of their last use."""

    def __init__(self) -> None:
        self.vectors: dict[str, np.ndarray] = {}

    def put(self, texts: list[str], vectors: np.ndarray) -> None:
        new = dict(zip(texts, vectors, strict=True))
        for text, vector in new.items():
            self.vectors.pop(text, None)
            self.vectors[text] = vector

    def use(self, text: str) -> np.ndarray:
        self.vectors[text] = self.vectors.pop(text)
        return self.vectors[text]


@settings(max_examples=25, deadline=None)
@given(history=_HISTORY, bound=st.sampled_from([LITTLE, PLENTY]))
def test_any_history_is_that_of_a_dict_that_forgets_its_oldest(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, list[str]]], bound: int
):
    """Whatever was put last comes back or is gone, and what is gone was used before what is there."""
    path = tmp_path_factory.mktemp("history") / "vectors.sqlite"
    cache, model = VectorCache(path, bound), _Dict()
    for number, (act, texts) in enumerate(history):
        if act == "put":
            vectors = _vectors(len(texts), seed=number)
            cache.put("model", texts, vectors)
            model.put(texts, vectors)
        elif act == "get":
            for text, vector in zip(texts, cache.get("model", texts), strict=True):
                assert vector is None or vector.tobytes() == model.use(text).tobytes()
        else:
            cache.close()
            cache = VectorCache(path, bound)

    found = cache.get("model", list(model.vectors))
    cache.close()

    is_there = [vector is not None for vector in found]
    assert is_there == sorted(is_there)
    assert all(is_there) or bound == LITTLE
    assert not path.exists() or path.stat().st_size <= bound


def test_a_damaged_entry_is_gone_and_can_be_put_again(cache: VectorCache, path: Path):
    """Its neighbours stay."""
    cache.put("model", _texts(3), _vectors(3))
    with sqlite3.connect(path) as other:
        other.execute("UPDATE vectors SET content = zeroblob(length(content)) WHERE id = 2")
    other.close()

    assert _same(cache.get("model", _texts(3)), _vectors(3)) == [True, False, True]
    cache.put("model", ["text 1"], _vectors(3)[1:2])
    assert all(_same(cache.get("model", _texts(3)), _vectors(3)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), flips=st.integers(1, 40))
def test_flipped_bits_never_give_a_wrong_vector(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flips: int
):
    """Anywhere in the file: header, trees, rows; also not after more was written into what is left."""
    path = tmp_path_factory.mktemp("flipped") / "vectors.sqlite"
    cache = VectorCache(path, PLENTY)
    cache.put("model", _texts(60), _vectors(60))
    cache.close()
    content, chance = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(flips):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)

    cache = VectorCache(path, PLENTY)
    for _ in range(3):
        found = cache.get("model", _texts(60))
        assert all(
            vector is None or is_same
            for vector, is_same in zip(found, _same(found, _vectors(60)), strict=True)
        )
        cache.put("model", _texts(60), _vectors(60))
    cache.close()


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 9000])
def test_a_file_that_is_no_database_is_put_aside(path: Path, content: bytes):
    """A cache that cannot be read is a cache that is empty."""
    path.parent.mkdir()
    path.write_bytes(content)
    cache = VectorCache(path, PLENTY)

    assert cache.get("model", ["a"]) == [None]
    cache.put("model", ["a"], _vectors(1))

    assert _same(cache.get("model", ["a"]), _vectors(1)) == [True]
    cache.close()


@pytest.mark.parametrize(
    "change",
    ["PRAGMA user_version=99", "PRAGMA application_id=7", "DROP TABLE vectors", "DELETE FROM clock"],
)
def test_a_file_of_another_version_or_program_is_put_aside(path: Path, change: str):
    """Whoever wants it back finds it beside the new one."""
    old = VectorCache(path, PLENTY)
    old.put("model", ["a"], _vectors(1))
    old.close()
    with sqlite3.connect(path) as other:
        other.execute(change)
    other.close()

    cache = VectorCache(path, PLENTY)
    for _ in range(2):
        cache.put("model", ["b"], _vectors(1))

    assert _same(cache.get("model", ["b"]), _vectors(1)) == [True]
    assert path.with_name("vectors.sqlite.damaged").exists()
    cache.close()


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """A cache is a convenience: the vectors are made again."""
    (tmp_path / "file").write_text("not a folder")
    cache = VectorCache(tmp_path / "file" / "vectors.sqlite", PLENTY)

    for _ in range(3):
        cache.put("model", ["a"], _vectors(1))
        assert cache.get("model", ["a"]) == [None]
    cache.close()

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "vector cache" in caplog.text


def test_a_full_disk_is_told_once_and_reading_goes_on(
    cache: VectorCache, path: Path, caplog: pytest.LogCaptureFixture
):
    """SQLite is told that no page is left."""
    cache.put("model", ["a"], _vectors(1))
    connection = cache._file._connection  # type: ignore[union-attr]
    connection.execute("PRAGMA max_page_count=1")

    for _ in range(3):
        cache.put("model", _texts(500), _vectors(500))

    assert _same(cache.get("model", ["a"]), _vectors(1)) == [True]
    assert len(caplog.records) == 1
    assert "full" in caplog.text


def test_threads_share_a_cache(cache: VectorCache):
    """Each finds what the others put."""

    def put_and_get(number: int) -> bool:
        texts = [f"{number} {index}" for index in range(40)]
        cache.put("model", texts, _vectors(40, seed=number))
        return all(_same(cache.get("model", texts), _vectors(40, seed=number)))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(put_and_get, range(24)))


_WRITER = """
import sys
from pathlib import Path
import numpy as np
from ingest_assets.embedders.vector_cache import VectorCache

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


def test_processes_share_a_file(path: Path):
    """Two that make the file at the same moment, and find all of each other's vectors."""
    writers = [_writer(path, name, 40) for name in ("first", "second")]
    for writer in writers:
        _go(writer)
    assert [writer.wait(60) for writer in writers] == [0, 0]

    cache = VectorCache(path, PLENTY)
    for name in ("first", "second"):
        texts = [f"{name} {number} {index}" for number in range(40) for index in range(20)]
        assert None not in [v if v is None else 1 for v in cache.get("model", texts)]
    cache.close()


def test_a_killed_process_leaves_a_file_that_works(path: Path):
    """What it had put before is there, and whole."""
    writer = _writer(path, "killed", 100_000)
    _go(writer)
    reader, found = VectorCache(path, PLENTY), 0
    while found < 5:
        found = sum(v is not None for v in reader.get("model", [f"killed {n} 0" for n in range(50)]))
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()

    after = reader.get("model", [f"killed {n} 0" for n in range(50)])
    assert sum(v is not None for v in after) >= found
    assert all(v is None or (v == number).all() for number, v in enumerate(after))
    reader.put("model", ["after"], _vectors(1))
    assert _same(reader.get("model", ["after"]), _vectors(1)) == [True]
    reader.close()


def test_of_two_that_find_the_file_damaged_one_puts_it_aside(path: Path):
    """The other leaves alone what has taken its place."""
    first, second = VectorFile(path, PLENTY, 1.0), VectorFile(path, PLENTY, 1.0)
    first.put_aside()
    new = VectorCache(path, PLENTY)
    new.put("model", ["a"], _vectors(1))

    second.put_aside()

    new.put("model", ["b"], _vectors(1))
    assert all(_same(VectorCache(path, PLENTY).get("model", ["a", "b"]), _vectors(1).repeat(2, 0)))
    new.close()
