"""Help, typing errors and completion are answered at once: they load no library."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ingest_assets.cli.main import COMMANDS, load_command
from ingest_tests.conftest import Command, Done, clean_environment

HEAVY = {"dagster", "polars", "pyarrow", "torch", "transformers", "docling", "sqlalchemy", "numpy"}
# Each of these takes a second or more; the help of a command can load what its module imports.
HEAVIEST = {"dagster", "torch", "transformers", "docling", "docling_core", "onnxruntime"}

EVERY_HELP = """
import json, sys
from ingest_assets.cli.main import COMMANDS, load_command, run

told = [[name] for name in COMMANDS]
told += [[name, below] for name in COMMANDS for below in getattr(load_command(name), "commands", {})]
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


def test_the_help_of_every_command_loads_nothing_that_takes_seconds():
    """A command imports what it needs; Dagster and models are loaded when it runs."""
    done = _fresh(EVERY_HELP)

    count, codes, modules = json.loads(done.stdout.splitlines()[-1])
    assert count >= 28
    assert codes == 0
    assert not HEAVIEST & set(modules)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_a_commands_own_help_says(name: str):
    """The list is a table, so that it needs no import of the commands."""
    paragraph = load_command(name).help.split("\n\n")[0]

    assert COMMANDS[name][1] == " ".join(paragraph.split())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 0, ""),
        (("--help",), 0, ""),
        (("al",), 2, "Did you mean 'all'"),
        (("--hepl",), 2, "--hepl"),
    ],
)
def test_the_list_of_commands_and_a_typo_load_no_library(arguments: tuple[str, ...], code: int, words: str):
    """They must be answered in half a second, not three."""
    done = _fresh(ONE_COMMAND, *arguments)

    ended, modules = json.loads(done.stdout.splitlines()[-1])
    assert ended == code
    assert words in done.stderr
    assert not HEAVY & set(modules)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("status", "--docs"), "--docs"),
        (("all", "--workers", "many"), "many"),
        (("queue", "inport", "list.jsonl"), "inport"),
        (("failures",), ""),
    ],
)
def test_a_typo_in_a_command_is_answered_before_anything_that_takes_seconds(
    arguments: tuple[str, ...], words: str
):
    """A wrong flag, a wrong value, a wrong command of a group, and a group without a command."""
    done = _fresh(ONE_COMMAND, *arguments)

    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == (2 if words else 0)
    assert words in done.stderr
    assert not HEAVIEST & set(modules)


@pytest.mark.parametrize("command", ["all", "status", "plan", "failures list", "queue stats", "models list"])
def test_a_wrong_setting_is_one_line_before_anything_that_takes_seconds(tmp_path: Path, command: str):
    """In the settings file, or in a variable."""
    (tmp_path / "ingest.toml").write_text("[chunks]\nmax_tokens = 'few'\n")

    done = _fresh(ONE_COMMAND, *command.split(), "--home", tmp_path)

    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert (code, "chunks.max_tokens" in done.stderr, len(done.stderr.splitlines())) == (2, True, 1)
    assert not HEAVIEST & set(modules)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ingest st", "status"),
        ("ingest failures re", "retry"),
        ("ingest failures retry --cat", "--category"),
        ("ingest all --until ch", "chunks"),
    ],
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
