"""Shared by tests of several rooms: the command line and tiny documents."""

import contextlib
import contextvars
import hashlib
import inspect
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from ingest_assets.cli.main import run

# Speed is measured in benchmarks; a slow first import must not fail a property. `make test` draws few
# examples, `make test-fuzz` (HYPOTHESIS_PROFILE=ci) many.
settings.register_profile("default", max_examples=20, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Shells start background jobs with SIGINT ignored; Dagster then ignores SIGTERM too. Processes that tests
# want to stop would inherit both.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TEMPLATE_SETTINGS = '[execution]\nrun_on = "inline"\n'

NOTES = {
    "swarm.md": "# Swarms\n\nA swarm leaves the hive in May, when nine of ten frames hold brood.\n",
    "varroa.html": "<html><body><h1>Varroa</h1><p>Treat with oxalic acid in late December.</p></body></html>",
    "feeding.md": "# Feeding\n\nGive sugar syrup until mid September, then stop.\n\n## Fondant\n\nLater.\n",
}


def examples_times(factor: float) -> settings:
    """Scale the number of examples of the profile, for expensive or cheap properties."""
    return settings(max_examples=max(1, round(settings().max_examples * factor)))


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Command:
    """The `ingest` command on one home, run in this process so that warm workers and models are shared."""

    home: Path

    def __call__(self, *arguments: object, check: int | None = 0, **environment: str) -> Done:
        """Run a command; `check` is the exit code it must have."""
        out, err = io.StringIO(), io.StringIO()
        with _environment(environment), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run([*map(str, arguments), "--home", str(self.home)])
        return _checked(Done(code, out.getvalue(), err.getvalue()), check)

    def apart(self, *arguments: object, check: int | None = 0, **environment: str) -> Done:
        """Run a command in a separate process, like a shell."""
        surroundings = clean_environment() | environment
        done = subprocess.run(
            self.line(*arguments), env=surroundings, capture_output=True, text=True, timeout=300, check=False
        )
        return _checked(Done(done.returncode, done.stdout, done.stderr), check)

    def json(self, *arguments: object, check: int | None = 0, **environment: str) -> dict[str, Any]:
        """Return the command's JSON object."""
        return json.loads(self(*arguments, "--json", check=check, **environment).stdout)

    def line(self, *arguments: object) -> list[str]:
        """Return the command line as a list."""
        return [sys.executable, "-m", "ingest_assets", *map(str, arguments), "--home", str(self.home)]

    def hashes(self) -> dict[str, str]:
        """Return every table of the home, by relative path, with the sha256 of its bytes."""
        data = self.home / "data"
        return {
            str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(data.rglob("*.parquet"))
        }


def _checked(done: Done, code: int | None) -> Done:
    assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@contextlib.contextmanager
def _environment(extra: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(clean_environment_of(before) | extra)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def clean_environment() -> dict[str, str]:
    """Return the environment without variables that would configure the product or find another instance."""
    return clean_environment_of(os.environ)


def clean_environment_of(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy of an environment without this product's, Dagster's and OpenTelemetry's variables."""
    return {k: v for k, v in environment.items() if not k.startswith(("INGEST_", "DAGSTER_", "OTEL_"))}


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Run each test with its own context variables.

    Dagster's test contexts leave their instance as the current one, even after it was deleted.
    """
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    contextvars.copy_context().run(pyfuncitem.obj, **arguments)
    return True


@pytest.fixture
def ingest(tmp_path: Path) -> Command:
    """The command on a new home."""
    home = tmp_path / "home"
    home.mkdir()
    return Command(home)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with three small documents."""
    return write_notes(tmp_path / "notes")


def write_notes(folder: Path) -> Path:
    """Write the three small documents into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in NOTES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notes, ingested once for all tests of this process: a folder with `home` and `notes`.

    Tests get it restored at this path, because a home stores paths.
    """
    place = tmp_path_factory.mktemp("template") / "place"
    (place / "home").mkdir(parents=True)
    (place / "home" / "ingest.toml").write_text(TEMPLATE_SETTINGS)
    Command(place / "home")("all", "--input", write_notes(place / "notes"))
    shutil.copytree(place, place.parent / "kept")
    return place


@pytest.fixture
def ingested(template: Path) -> Command:
    """The command on a home in which the three notes are ingested; the test can change both."""
    shutil.rmtree(template)
    shutil.copytree(template.parent / "kept", template)
    return Command(template / "home")


@pytest.fixture
def ingested_notes(ingested: Command) -> Path:
    """The folder that the ingested home watches."""
    return ingested.home.parent / "notes"


@pytest.fixture
def new_home(tmp_path: Path) -> Callable[[str], Command]:
    """Further homes for tests that compare two."""

    def make(name: str) -> Command:
        home = tmp_path / name
        home.mkdir()
        return Command(home)

    return make
