"""One run of the product over a folder of files, observed from outside."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ingest_assets.runner import read_manifest
from ingest_tests.conftest import clean_environment

LOOK_EVERY_S = 0.05
STAGES = ("documents", "doctags", "admission", "chunks")


@dataclass
class Observed:
    """The result of the run and its effects on the machine."""

    exit_code: int
    summary: dict[str, Any]
    errors: str
    seconds: float
    peak_worker_mebibytes: float
    written_elsewhere: list[str]
    endings: dict[str, str] = field(default_factory=dict)  # by file: `ok`, or the code of its failure
    messages: dict[str, str] = field(default_factory=dict)
    durations: dict[str, float] = field(default_factory=dict)  # of the longest stage

    def counts(self) -> dict[str, int]:
        """Number of files by result."""
        return dict(sorted(Counter(self.endings.values()).items()))


@dataclass
class Surroundings:
    """The folders where a program could leave files; only the home may change."""

    root: Path

    def __post_init__(self) -> None:
        for name in ("home", "user", "tmp", "here", "documents"):
            (self.root / name).mkdir(parents=True, exist_ok=True)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def documents(self) -> Path:
        return self.root / "documents"

    def variables(self) -> dict[str, str]:
        """The environment variables of folders."""
        user = self.root / "user"
        named = {"HOME": user, "TMPDIR": self.root / "tmp", "XDG_CACHE_HOME": user / ".cache"}
        path = os.pathsep.join(dict.fromkeys(part for part in [str(Path.cwd()), *sys.path] if part))
        return {name: str(folder) for name, folder in named.items()} | {"PYTHONPATH": path}

    def outside(self) -> dict[str, tuple[int, int]]:
        """Every file outside the home, with its size and time of change."""
        files = {}
        for folder in ("user", "tmp", "here", "documents"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.is_file() and not path.is_symlink():
                    status = path.stat()
                    files[str(path.relative_to(self.root))] = (status.st_size, status.st_mtime_ns)
        return files


def observe(around: Surroundings, timeout_s: float, max_worker_mebibytes: int) -> Observed:
    """Run `ingest chunk` over all documents."""
    line = [sys.executable, "-m", "ingest_assets", "chunk", "--input", str(around.documents), "--json"]
    line += ["--home", str(around.home), "--timeout-s", str(timeout_s), "--workers", "2"]
    limit = {"INGEST_EXECUTION__MAX_WORKER_MEBIBYTES": str(max_worker_mebibytes)}
    before, started = around.outside(), time.monotonic()
    run = subprocess.Popen(
        line,
        cwd=around.root / "here",
        env=clean_environment() | around.variables() | limit,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watch = _Watch(run.pid)
    watch.start()
    out, errors = run.communicate()
    watch.is_over = True
    after = around.outside()
    changed = sorted(name for name in after.keys() | before.keys() if after.get(name) != before.get(name))
    seconds = time.monotonic() - started
    summary = json.loads(out) if out.startswith("{") else {}
    observed = Observed(run.returncode, summary, errors, seconds, watch.peak / 2**20, changed)
    _read_endings(around, observed)
    return observed


def _read_endings(around: Surroundings, observed: Observed) -> None:
    """Read the last attempt of each stage at each file; a failed file has no later attempt."""
    for stage in STAGES:
        for row in read_manifest(around.home / "state" / "manifests" / f"{stage}.jsonl"):
            name = row.item_id.split(":", 1)[1]
            observed.endings[name] = row.error["code"] if row.error else "ok"
            if row.error:
                observed.messages[name] = row.error["message"]
            took = observed.durations.get(name, 0.0)
            observed.durations[name] = max(took, row.timings.get("exec_s", 0.0))


class _Watch(threading.Thread):
    """Measures the largest process below the run."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self.peak = 0
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            try:
                for process in self._root.children(recursive=True):
                    self.peak = max(self.peak, _resident(process))
            except psutil.Error:
                return
            time.sleep(LOOK_EVERY_S)


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
