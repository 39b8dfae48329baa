"""Help, typos and completion are answered at once: no library is loaded before a command is called."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ingest_tests.conftest import Command, Done, clean_environment

HEAVY = {"dagster", "polars", "pyarrow", "torch", "transformers", "docling", "sqlalchemy", "numpy"}

EVERY_HELP = """
import json, sys
import typer
from ingest_assets.cli.main import app, run

def paths(command, path):
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from paths(below, [*path, name])

told = list(paths(typer.main.get_command(app), []))
codes = [run([*path, "--help"]) for path in told]
print(json.dumps([len(told), sum(codes), sorted(sys.modules)]))
"""
ONE_COMMAND = """
import json, sys
from ingest_assets.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""


def _fresh(code: str, *arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-c", code, *map(str, arguments)]
    surroundings = clean_environment() | environment
    return subprocess.run(line, env=surroundings, capture_output=True, text=True, check=True)


def test_the_help_of_every_command_loads_no_library():
    """Three seconds to read three lines are two and a half too many."""
    done = _fresh(EVERY_HELP)

    count, codes, modules = json.loads(done.stdout.splitlines()[-1])
    assert count >= 28
    assert codes == 0
    assert not HEAVY & set(modules)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("al",), "al"),
        (("status", "--docs"), "--docs"),
        (("all", "--workers", "many"), "many"),
        (("queue", "inport", "list.jsonl"), "inport"),
        (("failures",), ""),
    ],
)
def test_a_typo_is_answered_before_a_library_is_loaded(arguments: tuple[str, ...], words: str):
    """A wrong command, a wrong flag, a wrong value, and a group without a command."""
    done = _fresh(ONE_COMMAND, *arguments)

    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == (2 if words else 0)
    assert words in done.stderr
    assert not HEAVY & set(modules)


@pytest.mark.parametrize("command", ["all", "status", "plan", "failures list", "queue stats", "models list"])
def test_a_wrong_setting_is_answered_before_a_library_is_loaded(tmp_path: Path, command: str):
    """In the settings file, or in a variable."""
    (tmp_path / "ingest.toml").write_text("[chunks]\nmax_tokens = 'few'\n")

    done = _fresh(ONE_COMMAND, *command.split(), "--home", tmp_path)

    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert (code, "chunks.max_tokens" in done.stderr) == (2, True)
    assert not HEAVY & set(modules)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("ingest st", "status"), ("ingest failures re", "retry"), ("ingest all --until ch", "chunks")],
)
def test_a_shell_completes_commands_flags_and_values(ingest: Command, typed: str, offered: str):
    """As `ingest --install-completion` sets it up."""
    count = str(len(typed.split()) - 1)
    shell = {"_INGEST_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": count}
    line = [sys.executable, "-m", "ingest_assets"]

    found = subprocess.run(line, env=clean_environment() | shell, capture_output=True, text=True, check=True)

    done = Done(found.returncode, found.stdout, found.stderr)
    assert offered in done.stdout.split(), done
    assert done.stderr == ""
