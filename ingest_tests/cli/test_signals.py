"""Two interrupts end the command, even if the main thread is blocked."""

import signal
import subprocess
import sys
import time

import pytest

from ingest_assets.cli.signals import EXIT_GRACE_S, INTERRUPTED
from ingest_tests.conftest import clean_environment

LISTEN = """
import time
from ingest_assets.cli.signals import INTERRUPTS
INTERRUPTS.listen()
"""
READY = "print('ready', flush=True)\n"

NATIVE = "import hashlib\n" + READY + "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10**9)"
DAGSTER = "from dagster._utils.interrupts import capture_interrupts\n" + READY
DAGSTER += "with capture_interrupts():\n    time.sleep(60)"
STUBBORN = (
    READY + "while True:\n    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n        pass"
)
ANSWERED = "with INTERRUPTS.announcing('ingest: stopping'):\n    " + READY
ANSWERED += "    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n        time.sleep(1)\n"
ANSWERED += "print(INTERRUPTS.count)"


def _start(code: str) -> "subprocess.Popen[str]":
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", LISTEN + code], env=clean_environment(), **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)  # until it is really stuck
    return process


@pytest.mark.chaos
@pytest.mark.parametrize("stuck", [NATIVE, DAGSTER, STUBBORN], ids=["native code", "dagster", "stubborn"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_the_second_interrupt_ends_the_process_within_seconds(stuck: str, number: signal.Signals):
    """A graceful exit gets a second, no more."""
    process = _start(stuck)
    process.send_signal(number)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(number)
    pressed_at = time.monotonic()

    _, errors = process.communicate(timeout=10)

    assert process.returncode == INTERRUPTED
    assert time.monotonic() - pressed_at < EXIT_GRACE_S + 2
    assert errors == "ingest: stopped at once; finished documents are kept.\n"


def test_the_first_interrupt_prints_its_message_and_a_doubled_signal_counts_once():
    """`timeout` sends its signal to the process and to the group."""
    process = _start(ANSWERED)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    assert process.stderr.readline() == "ingest: stopping\n"

    out, errors = process.communicate(timeout=10)

    assert (process.returncode, out, errors) == (0, "1\n", "")
