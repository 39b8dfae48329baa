"""A watched folder and its ledger, with a clock that tests set."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from ingest_assets.intake import schema
from ingest_assets.intake.folders.scan import ScanLimits, ScanReport, scan_sources
from ingest_assets.intake.folders.walk import Exclusions
from ingest_assets.intake.ledger import Document, Ledger, Source
from ingest_assets.settings.intake import BatchLimits
from ingest_tests.intake.postgres import NOBODY_UID, Postgres, running_postgres

NOW = 1_714_560_000.0  # 2024-05-01 10:40 UTC
CHANGES = {"new", "changed", "moved", "deleted", "restored"}


def counts(report: ScanReport) -> dict[str, int]:
    """Return the counters of a report that are not zero."""
    names = (*sorted(CHANGES), "unchanged", "waiting")
    return {name: getattr(report, name) for name in names if getattr(report, name)}


class Watched:
    """A folder called `docs`, more folders on request, their ledger, and scans at the time `now`."""

    def __init__(self, root: Path, ledger: Path | str | None = None) -> None:
        self.folder = root / "docs"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sources = [Source("docs", self.folder)]
        self.ledger_is_at = ledger or root / "state" / "ledger.sqlite"
        self.ledger = Ledger(self.ledger_is_at)
        self.now = NOW
        self._writes = 0

    def also(self, name: str) -> Path:
        """Watch another folder too."""
        folder = self.folder.with_name(name)
        folder.mkdir(exist_ok=True)
        self.sources = sorted([*self.sources, Source(name, folder)], key=lambda source: source.name)
        return folder

    def write(self, name: str, content: str | None = None) -> Path:
        """Write a file with a new modification time."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}" if content is None else content)
        self._writes += 1
        os.utime(path, ns=(0, int((NOW - 3600 + self._writes) * 1e9)))
        return path

    def scan(
        self,
        exclude: Exclusions | None = None,
        clock: Callable[[], float] | None = None,
        max_documents: int = 500,
        budget_seconds: float = float("inf"),
        settle_seconds: float = 0.0,
    ) -> ScanReport:
        """Scan the folders once."""
        limits = ScanLimits(BatchLimits(max_documents=max_documents), budget_seconds, settle_seconds)
        watched = [(source, exclude or Exclusions()) for source in self.sources]
        return scan_sources(self.ledger, watched, limits, clock or (lambda: self.now))

    def preview(self, max_documents: int = 500) -> ScanReport:
        """Return what a scan would report."""
        limits = ScanLimits(BatchLimits(max_documents=max_documents))
        watched = [(source, Exclusions()) for source in self.sources]
        return scan_sources(self.ledger, watched, limits, lambda: self.now, dry_run=True)

    def known(self) -> dict[str, Document]:
        """Return every document by path, including deleted ones."""
        return {document.path: document for document in self.ledger.documents()}

    def living(self) -> dict[str, str]:
        """Return path and hash of every document that is not deleted."""
        return {path: d.content_hash for path, d in self.known().items() if not d.is_deleted()}

    def last_seen(self, path: str) -> float:
        """Return when a document was last seen."""
        query = sa.select(schema.documents.c.last_seen).where(schema.documents.c.path == path)
        with self.ledger.begin() as connection:
            return float(connection.scalar(query))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for all tests that ask for one."""
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_is_at(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Return the location for a new ledger on each database."""
    if request.param == "sqlite":
        return tmp_path / "state" / "ledger.sqlite"
    return request.getfixturevalue("postgres").fresh_url()


@pytest.fixture
def watched(tmp_path: Path, ledger_is_at: Path | str) -> Iterator[Watched]:
    """An empty watched folder and a new ledger."""
    watched = Watched(tmp_path, ledger_is_at)
    yield watched
    watched.ledger.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an unprivileged user owns and can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="ingest-intake-"))
    try:
        if os.getuid() == 0:
            os.chown(folder, NOBODY_UID, NOBODY_UID)
        yield folder
    finally:
        for path in folder.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
        shutil.rmtree(folder)


AS_NOBODY = """
import os, sys
import sqlalchemy
from ingest_assets.intake.folders import scan as watch
sqlalchemy.create_engine("sqlite://").connect().close()  # loads what is loaded late
if os.getuid() == 0:
    try:
        os.setgroups([]); os.setgid({uid}); os.setuid({uid})
    except PermissionError:
        sys.exit(77)
"""


@pytest.fixture
def as_nobody() -> Callable[..., str]:
    """Run code in a process without root, so that permission bits apply."""

    def run(code: str, *arguments: object) -> str:
        program = AS_NOBODY.format(uid=NOBODY_UID) + code
        command = [sys.executable, "-c", program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 77:
            pytest.skip("this machine lets no process drop its root rights")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
