"""Commands print their output, or end without a traceback, whatever the standard streams are."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_tests.conftest import Command, clean_environment

NAME = "größe.md"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A home whose documents are registered and not yet processed."""
    folder = tmp_path_factory.mktemp("streams")
    (folder / "notes").mkdir()
    for number in range(3):
        (folder / "notes" / f"{number}-{NAME}").write_text(f"# Note\n\nNumber {number}.\n")
    (folder / "home").mkdir()
    command = Command(folder / "home")
    command("all", "--input", folder / "notes", "--until", "documents")
    return command


def _through(
    command: Command, shell: str, *arguments: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run a shell line in which COMMAND stands for the command."""
    line = shell.replace("COMMAND", '"$@"')
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line, "-", *command.line(*arguments)],
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_pipe_that_is_closed_early_is_not_an_error(home: Command, form: tuple[str, ...]):
    """`| head -1` has read enough."""
    done = _through(home, "COMMAND | head -c 1", "status", "--documents", *form)

    assert len(done.stdout) == 1
    assert done.stderr == ""


def test_a_pipe_without_a_reader_is_not_an_error(home: Command):
    """Even if it was closed before the first line."""
    done = _through(home, "COMMAND | true; true", "status", "--documents")

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_closed_output_is_not_an_error_and_a_full_one_is_one_line(home: Command, form: tuple[str, ...]):
    """A closed stream has no reader; the reader of a full one must learn that output is missing."""
    closed = _through(home, "COMMAND >&-", "status", *form)
    full = _through(home, "COMMAND >/dev/full", "status", *form)

    assert (closed.returncode, closed.stderr) == (0, "")
    assert full.returncode == 1
    assert len(full.stderr.splitlines()) == 1
    assert "No space left on device" in full.stderr


PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.slow
@pytest.mark.parametrize("surroundings", [PLAIN, {"PYTHONIOENCODING": "latin-1"}], ids=["C", "latin-1"])
def test_another_encoding_loses_no_name_and_no_result(home: Command, surroundings: dict[str, str]):
    """JSON stays valid; text escapes the characters that the encoding lacks."""
    result = _through(home, "COMMAND", "status", "--documents", "--json", **surroundings)
    text = _through(home, "COMMAND", "status", "--documents", **surroundings)

    ids = {line["doc_id"] for line in json.loads(result.stdout)["checkpoints"]}
    assert ids == {f"notes:{number}-{NAME}" for number in range(3)}
    assert (text.returncode, text.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("status", "--documets"), 2),
        (("statsu",), 2),
        (("inspect", "nothing.md"), 2),
        (("all", "--input", "/nowhere/at/all"), 2),
        (("all", "--from", "chunks", "--until", "doctags"), 2),
        (("failures", "list", "--stage", "parsing"), 2),
        (("models", "pull", "heron"), 2),
        (("queue", "import", "/nowhere/list.jsonl"), 2),
    ],
)
def test_an_error_is_an_object_too(home: Command, arguments: tuple[str, ...], code: int):
    """With --json, errors are printed as JSON too; the line on standard error is the same."""
    done = home(*arguments, "--json", check=code)

    found = json.loads(done.stdout)
    assert found["exit_code"] == code
    assert done.stderr.split() == f"ingest: {found['error']}".split()


AS_NOBODY = """
import os, sys
import ingest_assets.cli.run, ingest_assets.cli.queue
from ingest_assets.cli.main import run
run(["all", "--dry-run", "--home", sys.argv[1]])  # does the lazy imports
sys.stdout.flush(); sys.stderr.write("-----\\n")
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
codes = [run([*line.split(), "--home", sys.argv[1]]) for line in sys.argv[2:]]
print("codes", codes)
"""


@pytest.fixture
def read_only(home: Command) -> Iterator[Path]:
    """A home that all users can read but not write."""
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        copy = Path(root) / "home"
        shutil.copytree(home.home, copy)
        places = (copy, *copy.rglob("*"))
        for path in places:
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield copy
        for path in places:
            path.chmod(0o755)


def test_writing_to_a_read_only_home_is_one_line(read_only: Path):
    """The line names the path and what to do; no traceback of a database."""
    lines = ["all", "queue enqueue a --url https://a.org/1"]

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AS_NOBODY, str(read_only), *lines],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert "codes [1, 1]" in done.stdout, done.stderr
    told = done.stderr.split("-----\n")[-1].strip().splitlines()
    assert len(told) == 2
    assert all("cannot be used as the ledger (attempt to write a readonly" in line for line in told), told
    assert all(line.endswith("; check its permissions and the disk.") for line in told)


@pytest.mark.chaos
@pytest.mark.parametrize("after_s", [0.4, 0.8, 1.5])
def test_ctrl_c_while_it_starts_ends_it_without_a_traceback(home: Command, after_s: float):
    """Libraries that are interrupted while loading print all kinds of errors."""
    process = subprocess.Popen(
        home.line("status"),
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)

    _, errors = process.communicate(timeout=60)

    # The signal itself kills a process whose interpreter is still starting; shells report 130 for that, too.
    assert process.returncode in (0, 130, -signal.SIGINT)
    assert "Traceback" not in errors


def test_narrow_terminals_get_every_word(home: Command):
    """Lines are folded, not cut."""
    done = _through(home, "COMMAND", "status", COLUMNS="20")
    told = _through(home, "COMMAND --help", "status", COLUMNS="20")

    assert "documents" in done.stdout
    assert "--documents" in told.stdout
    assert os.linesep in told.stdout
