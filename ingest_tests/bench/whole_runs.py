"""`ingest all` in a separate process, as started by a shell: its seconds and its memory."""

import contextlib
import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ingest_tests.conftest import Command, clean_environment

_LOOK_S = 0.05
_LAST_TABLES = ("dense", "lexical")


@dataclass(slots=True)
class WholeRun:
    """Seconds of the command including start, its output, and samples of memory and finished batches."""

    seconds: float = 0.0
    said: dict[str, Any] = field(default_factory=dict)
    resident: list[tuple[int, int]] = field(default_factory=list)

    @property
    def inner_seconds(self) -> float:
        """Return the seconds after the start of Python, the imports and the scan."""
        return float(self.said["wall_seconds"])


def whole_run(
    home: Path, *arguments: object, batch_documents: int, stop: Callable[[], bool] | None = None
) -> WholeRun:
    """Run the command to its end; or kill it, with its workers, as soon as `stop` returns true.

    Fails when the command came to its end before that: nothing would have been interrupted.
    """
    home.mkdir(exist_ok=True)
    own = {"INGEST_BATCHES__MAX_DOCUMENTS": str(batch_documents), "INGEST_HOME": str(home)}
    surroundings = clean_environment() | own
    surroundings.pop("PYTHONDONTWRITEBYTECODE", None)  # like an installed package: modules are compiled once
    run, started = WholeRun(), time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        line = Command(home).line("all", *arguments, "--json")
        child = subprocess.Popen(line, env=surroundings, stdout=out, stderr=err, start_new_session=True)
        _watch(child, home, run, stop)
        run.seconds = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        if stop is not None:
            assert child.returncode == -signal.SIGKILL, f"ended by itself ({child.returncode}), not killed"
        else:
            assert child.returncode == 0, err.read()
            run.said = json.loads(out.read())
    return run


def _watch(
    child: "subprocess.Popen[bytes]", home: Path, run: WholeRun, stop: Callable[[], bool] | None
) -> None:
    coordinator = psutil.Process(child.pid)
    while child.poll() is None:
        if stop is not None and stop():
            child.kill()  # its workers end with it
            child.wait()
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            run.resident.append((_batches_done(home), coordinator.memory_info().rss))
        time.sleep(_LOOK_S)
    assert child.returncode != -signal.SIGKILL, "killed by somebody else"


def _batches_done(home: Path) -> int:
    counts = []
    for family in _LAST_TABLES:
        folder = home / "data" / "embeddings" / family
        counts.append(len(list(folder.glob("[!.]*.parquet"))))
    return min(counts)


def attempts(home: Path) -> int:
    """Count the finished attempts in the manifests of all stages: the work that was really done."""
    files = (home / "state" / "manifests").glob("*.jsonl")
    return sum(file.read_bytes().count(b"\n") for file in files)
