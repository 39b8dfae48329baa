"""A vector cache that threads and processes share, also with one that is killed."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ingest_assets.embedders.cache import VectorCache
from ingest_tests.conftest import clean_environment
from ingest_tests.embedders.cached_vectors import PLENTY, are_same, made_vectors


def test_threads_share_a_cache(cache: VectorCache):
    """Each finds what the others put."""

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
    """Two that make the file at the same moment, and find all of each other's vectors."""
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
    """What it had put before is there, and whole."""
    writer = _writer(cache_path, "killed", 100_000)
    _go(writer)
    reader, found = VectorCache(cache_path, PLENTY), 0
    while found < 5:
        found = sum(v is not None for v in reader.get("model", [f"killed {n} 0" for n in range(50)]))
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()

    after = reader.get("model", [f"killed {n} 0" for n in range(50)])
    assert sum(v is not None for v in after) >= found
    assert all(v is None or (v == number).all() for number, v in enumerate(after))
    reader.put("model", ["after"], made_vectors(1))
    assert are_same(reader.get("model", ["after"]), made_vectors(1)) == [True]
    reader.close()
