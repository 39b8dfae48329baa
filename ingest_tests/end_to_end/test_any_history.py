"""Whatever happens to the documents and the machine, the tables equal those of a clean rebuild."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest_assets.storage.parquet import read_footer
from ingest_tests.conftest import clean_environment, examples_times

pytestmark = pytest.mark.fuzz

ASSETS = ("documents", "doctags", "admission", "chunks", "embeddings/dense", "embeddings/lexical")
# Columns with the place and time of a document, not its content.
HISTORY = ("batch", "seq")
NAMES = ("a.md", "b.md", "deep/c.md", "d.html", "broken.pdf")
WORDS = ("bees", "wasps", "hornets")
EASY = {
    "INGEST_BATCHES__MAX_DOCUMENTS": "3",
    "INGEST_EXECUTION__RUN_ON": "inline",
    "INGEST_QUEUE__MAX_JOB_ATTEMPTS": "100",
    "INGEST_INTAKE__ACCEPT_EMPTY_FOLDERS": "true",
}


class Machine:
    """Runs commands in processes that can die; slow imports are done once."""

    def __init__(self) -> None:
        line = [sys.executable, "-m", "ingest_tests.end_to_end.mortal"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        quiet = {"stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(line, env=clean_environment() | EASY, **pipes, **quiet)
        assert self._answer() == "ready"

    def run(self, *arguments: object, die_at: int = 0) -> int:
        """Return the exit code of a command; -9 if it died."""
        assert self._process.stdin is not None
        wish = {"arguments": list(map(str, arguments)), "die_at": die_at}
        self._process.stdin.write(json.dumps(wish) + "\n")
        self._process.stdin.flush()
        return int(self._answer())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """One for all histories."""
    machine = Machine()
    yield machine
    machine.close()


@dataclass
class World:
    """Two watched folders, a list of queued files, and a home that follows them."""

    root: Path
    machine: Machine
    writes: int = 0
    queued: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("one", "two", "list"):
            (self.root / name).mkdir()
        self._settings(self.root / "home")

    def _settings(self, home: Path) -> None:
        home.mkdir()
        sources = [f'[sources.{name}]\npath = "{self.root / name}"\n' for name in ("one", "two")]
        (home / "ingest.toml").write_text("\n".join(sources))

    def act(self, action: str, folder: str, name: str, word: str, number: int) -> None:
        """Do one thing of a history."""
        path = self.root / folder / name
        if action == "write":
            self.write(path, word)
        elif action == "move" and path.exists():
            other = (
                self.root / ("two" if folder == "one" else "one") / (name if number % 2 else f"new-{name}")
            )
            other.parent.mkdir(exist_ok=True)
            path.replace(other)
        elif action == "delete":
            path.unlink(missing_ok=True)
        elif action == "queue":
            self.queue(name.replace("/", "-"))
        elif action in ("run", "crash"):
            self.machine.run("all", "--home", self.root / "home", die_at=number if action == "crash" else 0)

    def write(self, path: Path, word: str) -> None:
        """Write a unique document."""
        path.parent.mkdir(exist_ok=True)
        self.writes += 1
        path.write_text(_text(path.name, f"{word} {self.writes}"))
        os.utime(path, ns=(0, 1_700_000_000_000_000_000 + self.writes * 1_000_000_000))

    def queue(self, name: str) -> None:
        if name not in self.queued:
            self.queued[name] = self.root / "list" / name
            self.write(self.queued[name], "queued")
        self._enqueue(self.root / "home")

    def _enqueue(self, home: Path) -> None:
        for name, path in self.queued.items():
            self.machine.run("queue", "enqueue", f"q-{name}", "--path", path, "--home", home)

    def settled(self) -> Path:
        """Return the home after one more, uninterrupted run."""
        assert self.machine.run("all", "--home", self.root / "home") in (0, 1)
        return self.root / "home"

    def rebuilt(self) -> Path:
        """Return another home that ingests all of it at once."""
        home = self.root / "rebuilt"
        self._settings(home)
        self._enqueue(home)
        assert self.machine.run("all", "--home", home) in (0, 1)
        return home

    def expected(self) -> dict[str, str]:
        """Return what the documents table must contain: ids and hashes."""
        files = {
            f"{folder}:{path.relative_to(self.root / folder).as_posix()}": path
            for folder in ("one", "two")
            for path in (self.root / folder).rglob("*")
            if path.is_file()
        }
        files |= {f"q-{name}": path for name, path in self.queued.items()}
        return {doc_id: hashlib.sha256(path.read_bytes()).hexdigest() for doc_id, path in files.items()}


def _text(name: str, words: str) -> str:
    """Return a text that is long enough to be admitted, unless it repeats another."""
    if name.endswith(".pdf"):
        return f"%PDF-1.7 {words}"
    all_of_it = f"All that a keeper of bees should know of {words}."
    if name.endswith(".html"):
        return f"<html><body><h1>About {words}</h1><p>{all_of_it}</p></body></html>"
    return f"# About {words}\n\n{all_of_it}\n"


def table(home: Path, asset: str) -> list[dict[str, Any]]:
    """Return all rows of an asset, over all batches."""
    paths = sorted((home / "data" / asset).glob("*.parquet"))
    frames = [pl.read_parquet(path).drop(*HISTORY, strict=False) for path in paths]
    rows = [row for frame in frames for row in frame.to_dicts()]
    for row in rows:
        if row.get("resolver") is not None:
            row["path"] = Path(row["path"]).name  # the store is below the home
    return sorted(rows, key=lambda row: (row["doc_id"], row.get("ordinal", 0)))


def failures(home: Path, asset: str) -> dict[str, str]:
    """Return every failure of an asset: id and code."""
    footers = [read_footer(path) for path in (home / "data" / asset).glob("*.parquet")]
    return {item: each.error.code for footer in footers if footer for item, each in footer.failures.items()}


events = st.tuples(
    st.sampled_from(["write", "write", "write", "move", "delete", "queue", "run", "crash", "crash"]),
    st.sampled_from(["one", "two"]),
    st.sampled_from(NAMES),
    st.sampled_from(WORDS),
    st.integers(1, 60) | st.integers(60, 400),
)


@settings(examples_times(0.1), suppress_health_check=list(HealthCheck), print_blob=True)
@given(history=st.lists(events, min_size=4, max_size=12))
def test_the_tables_always_equal_a_clean_rebuild(
    machine: Machine, history: list[tuple[str, str, str, str, int]]
) -> None:
    """Files are added, changed, moved and deleted, artifacts queued, and runs killed at any durable step."""
    root = Path(tempfile.mkdtemp())
    try:
        world = World(root, machine)
        for event in history:
            world.act(*event)

        home, rebuilt = world.settled(), world.rebuilt()

        assert {r["doc_id"]: r["content_hash"] for r in table(home, "documents")} == world.expected()
        for asset in ASSETS:
            assert table(home, asset) == table(rebuilt, asset), asset
            assert failures(home, asset) == failures(rebuilt, asset), asset
    finally:
        shutil.rmtree(root)
