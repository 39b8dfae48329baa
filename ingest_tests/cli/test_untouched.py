"""Read-only commands do not change a byte of a home, whatever state it is in."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ingest_tests.conftest import Command, write_notes
from ingest_tests.intake.conftest import NOBODY_UID
from ingest_tests.intake.fetch.site import Site
from ingest_tests.intake.looks import WRITER, photo, running, write_old_ledger
from ingest_tests.intake.postgres import Postgres, running_postgres
from ingest_tests.intake.test_looking import dump

LOOKS = [
    ("all", "--dry-run"),
    ("all", "--dry-run", "--force", "--workers", "3"),
    ("plan", "--json"),
    ("status",),
    ("status", "--documents", "--json"),
    ("inspect", "swarm.md"),
    ("queue", "stats"),
    ("queue", "retry-failed", "--dry-run"),
    ("failures", "list"),
]
SETTINGS = """
[execution]
run_on = "inline"
[fetch]
allow_private = true
[queue.quotas]
http = { rate = 1, per_seconds = 60 }
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site with queued pages that must not be fetched."""
    with Site().open() as site:
        yield site


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Path:
    """A home with notes that are done, changed and new, and with pages to fetch; no process has it open."""
    root = tmp_path_factory.mktemp("untouched") / "now"
    home = root / "home"
    home.mkdir(parents=True)
    (home / "ingest.toml").write_text(SETTINGS)
    command = Command(home)
    write_notes(root / "notes")
    command.apart("all", "--input", root / "notes", "--until", "documents")
    page = site.page("/page", lambda visit: visit.reply(200, b"never asked for"))
    command.apart("queue", "enqueue", "page", "--url", page)
    (root / "notes" / "swarm.md").write_text("# Swarms\n\nNow in June.\n")
    (root / "notes" / "feeding.md").unlink()
    (root / "notes" / "new.md").write_text("# New\n")
    shutil.copytree(root, root.parent / "then")
    return root


@pytest.fixture
def command(made: Path, site: Site) -> Command:
    """The command on that home, always at the same path because a home stores paths."""
    shutil.rmtree(made)
    shutil.copytree(made.parent / "then", made)
    site.visits.clear()
    return Command(made / "home")


def quiet(_home: Path, _stack: ExitStack) -> None:
    """No process has the ledger open."""


def written(home: Path, stack: ExitStack) -> None:
    """Another process is in the middle of a transaction."""
    stack.enter_context(running(WRITER, home / "state" / "ledger.sqlite"))


def killed(home: Path, _stack: ExitStack) -> None:
    """Another process was killed in the middle of a transaction."""
    with running(WRITER, home / "state" / "ledger.sqlite"):
        pass


def version_1(home: Path, _stack: ExitStack) -> None:
    """The ledger is that of an older release and has a folder of the settings."""
    write_old_ledger(home / "state" / "ledger.sqlite", 1)
    (home / "ingest.toml").write_text(f'{SETTINGS}[sources.docs]\npath = "/docs"\n')


def version_2(home: Path, _stack: ExitStack) -> None:
    """The ledger is that of another older release."""
    write_old_ledger(home / "state" / "ledger.sqlite", 2)


def without_ledger(home: Path, _stack: ExitStack) -> None:
    """The ledger was removed."""
    (home / "state" / "ledger.sqlite").unlink()


def empty(home: Path, _stack: ExitStack) -> None:
    """The home is empty."""
    shutil.rmtree(home)
    home.mkdir()


# Commands that report an unknown document or an empty home.
REFUSED = {
    "version_1": ("inspect",),
    "version_2": ("inspect",),
    "without_ledger": ("inspect", "all", "plan"),
    "empty": ("inspect", "all", "plan"),
}
STATES = [quiet, written, killed, version_1, version_2, without_ledger, empty]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_read_only_commands_change_nothing(
    command: Command, site: Site, state: Callable[[Path, ExitStack], None]
):
    """No byte, no time, no file; and no site is asked, so no quota is used."""
    with ExitStack() as stack:
        state(command.home, stack)
        before = photo(command.home)

        for look in LOOKS:
            is_refused = look[0] in REFUSED.get(state.__name__, ())
            command(*look, check=2 if is_refused else 0)
            assert photo(command.home) == before, look

    assert site.visits == []


@pytest.mark.slow
@pytest.mark.parametrize("state", [quiet, killed], ids=lambda state: state.__name__)
def test_read_only_commands_in_a_separate_process_change_nothing(command: Command, state):
    """Nor does the end of the process."""
    with ExitStack() as stack:
        state(command.home, stack)
        before = photo(command.home)

        for look in (("all", "--dry-run"), ("status",)):
            command.apart(*look)

        assert photo(command.home) == before


def test_a_plan_of_a_new_folder_creates_nothing(tmp_path: Path, notes: Path):
    """Neither a home nor a ledger."""
    command = Command(tmp_path / "home")

    result = command.json("all", "--input", notes, "--dry-run")

    assert result["totals"]["doctags"] == 3
    assert not command.home.exists()


def test_committed_changes_of_a_killed_writer_are_seen(command: Command):
    """Uncommitted ones are not."""
    with ExitStack() as stack:
        killed(command.home, stack)

    assert {source["name"] for source in command.json("status")["sources"]} == {"notes", "late"}


AS_NOBODY = """
import os, sys
from ingest_assets.cli.main import run
import ingest_assets.cli.inspect, ingest_assets.cli.status
import ingest_assets.cli.failures, ingest_assets.cli.queue
import ingest_assets.cli.run, ingest_assets.cli.plan, polars, pyarrow.parquet
with open(os.devnull, "w") as quiet:
    sys.stdout, out = quiet, sys.stdout
    run(["plan", "--home", sys.argv[2]])  # does the lazy imports
    sys.stdout = out
if os.getuid() == 0:
    try:
        os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
    except PermissionError:
        sys.exit(77)
os.environ["HOME"] = "/nonexistent"
codes = [run([*look.split(), "--home", sys.argv[2]]) for look in sys.argv[3:]]
print("codes", codes)
"""


@pytest.fixture
def read_only(command: Command) -> Iterator[Path]:
    """The home at a place where all users can read it but not write."""
    root = Path(tempfile.mkdtemp(prefix="ingest-cli-"))
    root.chmod(0o755)
    home = root / "home"
    shutil.copytree(command.home, home)
    places = (home, *home.rglob("*"))
    for path in places:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield home
    for path in places:
        path.chmod(0o755)
    shutil.rmtree(root)


@pytest.mark.graph
def test_a_read_only_home_can_be_inspected(read_only: Path):
    """By a user without write permission anywhere in it."""
    before = photo(read_only)
    looks = [" ".join(look) for look in LOOKS]

    line = [sys.executable, "-c", AS_NOBODY, str(NOBODY_UID), str(read_only), *looks]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)

    if done.returncode == 77:
        pytest.skip("this machine lets no process give up root's rights")
    assert done.returncode == 0, done.stderr
    assert f"codes {[0] * len(looks)}" in done.stdout, done.stderr
    assert photo(read_only) == before


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    with running_postgres() as server:
        yield server


@pytest.mark.slow
def test_read_only_commands_change_nothing_on_a_server(
    postgres: Postgres, tmp_path: Path, notes: Path, site: Site
):
    """Neither in the database nor in the home; also before the ledger exists."""
    home = tmp_path / "home"
    home.mkdir()
    url = postgres.fresh_url()
    (home / "ingest.toml").write_text(f'{SETTINGS}[intake]\nledger = "{url}"\n')
    command = Command(home)
    command("all", "--dry-run", "--input", notes)
    assert dump(url) == {}
    command("all", "--input", notes, "--until", "documents")
    command("queue", "enqueue", "page", "--url", site.url("/page"))
    (notes / "swarm.md").write_text("# Swarms\n\nNow in June.\n")
    before, rows = photo(home), dump(url)

    for look in LOOKS:
        command(*look)

    assert command.json("plan")["totals"]["documents"] == 2
    assert (photo(home), dump(url)) == (before, rows)
