"""Dagster's servers as child processes that never outlive this one."""

import contextlib
import ctypes
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from logging.handlers import RotatingFileHandler

import psutil

from ingest_assets.core.layout import Layout
from ingest_assets.defs.instance import environment

_LOG_BYTES = 10 * 1024 * 1024
_LOG_FILES = 3
_PR_SET_PDEATHSIG = 1
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def commands(address: str, port: int) -> dict[str, list[str]]:
    """The command line of each server; each starts a code server of its own."""
    module = ["-m", "ingest_assets.definitions"]
    return {
        "web-server": [sys.executable, "-m", "dagster_webserver", "-h", address, "-p", str(port), *module],
        "daemon": [sys.executable, "-m", "dagster._daemon", "run", *module],
    }


class Server:
    """One child: its output goes to a log of bounded size, and it ends when its parent does."""

    def __init__(self, name: str, command: list[str], layout: Layout) -> None:
        self.name = name
        self.log = layout.logs / f"{name}.log"
        self._process = subprocess.Popen(
            command,
            env=os.environ | environment(layout),
            cwd=layout.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        self._copier = threading.Thread(target=self._copy_output, name=f"log of {name}", daemon=True)
        self._copier.start()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def ask_to_stop(self) -> None:
        """What Ctrl-C would do."""
        if self.is_running():
            self._process.send_signal(signal.SIGINT)

    def stop(self, limit_seconds: float) -> None:
        """Wait for the end, then end what the server leaves behind: its code server and the runs in it.

        A run gets SIGTERM, which Dagster turns into an interrupted run whose finished documents are kept;
        after the limit the rest of the group is killed.
        """
        deadline = time.monotonic() + limit_seconds
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_seconds)
        self._signal_group(signal.SIGTERM)
        while self._group() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.kill()
        self._process.wait()
        self._copier.join(timeout=5)

    def kill(self) -> None:
        """No more patience: the server and the runs in it; their worker processes end with them."""
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _group(self) -> list[int]:
        """Living processes of the server's group, the server itself included."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                is_alive = process.status() != psutil.STATUS_ZOMBIE
                if os.getpgid(process.pid) == self._process.pid and is_alive:
                    found.append(process.pid)
        return found

    def _copy_output(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(self.log, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES, encoding="utf-8")
        assert self._process.stdout is not None  # opened as a pipe above
        for line in self._process.stdout:
            handler.emit(logging.makeLogRecord({"msg": _COLOURS.sub("", line.rstrip("\n"))}))
        handler.close()


def _end_with_parent() -> None:
    """Even a killed parent takes its servers along: two daemons on one home would repeat runs."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
