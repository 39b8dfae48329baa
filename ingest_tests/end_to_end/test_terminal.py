"""Ctrl-C at a terminal: the first stops gracefully, the second immediately, and the next run continues."""

import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ingest_tests.conftest import Command, clean_environment
from ingest_tests.end_to_end.conftest import SAMPLES
from ingest_tests.end_to_end.leftovers import are_gone, attempts, below, line_of, outputs, staged, wait_until
from ingest_tests.end_to_end.terminal import Terminal

pytestmark = pytest.mark.chaos

GRACE_S = 5.0
ANSWER = "ingest: stopping; documents get up to 5 s, Ctrl-C again to stop immediately"
LAST_WORDS = "ingest: interrupted; finished documents are kept, the next run continues."


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal whose shell has no settings of this product."""
    terminal = Terminal(clean_environment())
    yield terminal
    terminal.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, documents: Path) -> dict[str, str]:
    """The hash of every table of an uninterrupted run."""
    command = Command(tmp_path_factory.mktemp("uninterrupted"))
    command("all", "--input", documents)
    return command.hashes()


def _start(terminal: Terminal, command: Command, folder: Path, parts: int = 1) -> list[psutil.Process]:
    """Run the command until doctags has finished some documents; return the processes of the job."""
    terminal.type(shlex.join(command.line("all", "--input", folder)))
    wait_until(lambda: len(staged(command)) >= parts)
    return below(terminal.shell.pid)


def test_ctrl_c_during_doctags_stops_gracefully_and_the_next_run_continues(
    ingest: Command, documents: Path, terminal: Terminal, whole: dict[str, str]
):
    """Running documents finish, nothing is left behind or computed twice, and no byte differs."""
    job = _start(terminal, ingest, documents)
    pressed_at = terminal.press()
    terminal.wait_for(ANSWER, seconds=2)

    assert terminal.exit_code(GRACE_S + 10) == 130
    assert time.monotonic() - pressed_at < GRACE_S + 5
    assert LAST_WORDS in terminal.screen
    assert "Traceback" not in terminal.screen
    wait_until(lambda: are_gone(job), 20)
    first, finished = attempts(ingest), staged(ingest)
    assert 1 <= len(finished) < len(SAMPLES), "the press must come in the middle"
    assert outputs(first) == finished
    assert {row.status for row in first if not row.outputs} == {"cancelled"}

    result = ingest.json("all")

    assert outputs(attempts(ingest)[len(first) :]).isdisjoint(finished)
    assert result["stages"]["doctags"]["skipped"] == len(finished)
    assert result["stages"]["doctags"]["succeeded"] == len(SAMPLES) - len(finished)
    assert ingest.hashes() == whole


def test_a_second_ctrl_c_stops_immediately(
    ingest: Command, documents: Path, terminal: Terminal, whole: dict[str, str]
):
    """Without the grace period, without orphans, and without damage."""
    job = _start(terminal, ingest, documents)
    terminal.press()
    terminal.wait_for(ANSWER, seconds=2)
    time.sleep(0.3)  # a fast double press; two signals within a moment count as one
    pressed_at = terminal.press()

    assert terminal.exit_code(GRACE_S) == 130
    assert time.monotonic() - pressed_at < 3
    assert "Traceback" not in terminal.screen
    wait_until(lambda: are_gone(job), 20)

    ingest("all")

    assert ingest.hashes() == whole


def test_repeated_ctrl_c_while_workers_start_prints_no_traceback(
    ingest: Command, documents: Path, terminal: Terminal
):
    """The terminal signals every process of the job, including those that are still starting."""
    terminal.type(shlex.join(ingest.line("all", "--input", documents)))
    terminal.wait_for(r"documents: 8 done")
    wait_until(lambda: any("forkserver" in line_of(each) for each in below(terminal.shell.pid)))
    job = below(terminal.shell.pid)
    for _ in range(60):
        terminal.press()
        time.sleep(1 / 30)

    assert terminal.exit_code(5) == 130
    assert "Traceback" not in terminal.screen
    assert "Error" not in terminal.screen
    wait_until(lambda: are_gone(job), 20)
