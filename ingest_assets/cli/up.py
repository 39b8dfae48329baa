"""`ingest up`: run the web UI and the daemon for a home until Ctrl-C."""

import contextlib
import ctypes
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Mapping
from logging.handlers import RotatingFileHandler
from typing import Annotated

import psutil
import typer

from ingest_assets.app.home import Home, open_home
from ingest_assets.cli.flags import ExperimentalFlag, HomeFlag, JsonFlag
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.signals import INTERRUPTS
from ingest_assets.core.errors import ConfigError
from ingest_assets.storage.locks import FileLock

ADDRESS = "127.0.0.1"
_STOP_SECONDS = 30.0  # active runs finish the documents they have started
_STOPPING = f"ingest: stopping servers and runs (up to {_STOP_SECONDS:g} s); Ctrl-C again to stop immediately"
_LOG_BYTES = 10 * 1024 * 1024
_LOG_FILES = 3
_PR_SET_PDEATHSIG = 1  # a constant of Linux that Python does not export
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

PortFlag = Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of the web UI.")]


def up(
    home_path: HomeFlag = None,
    port: PortFlag = 3000,
    experimental: ExperimentalFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Start the web UI and the daemon (sensors, schedule, run queue) on 127.0.0.1; Ctrl-C stops both."""
    home = open_home(home_path)
    home.validate()
    lock = FileLock(home.layout.up_lock)
    if not lock.try_acquire():
        raise ConfigError(f"`ingest up` is already running for {home.layout.home}; stop it first.")
    try:
        _require_free(port)
        environment = _prepare_instance(home)
        if not as_json:
            say(f"Starting the web UI and the daemon for {home.layout.home}. Logs: {home.layout.logs}")
        code = _serve(home, port, environment, lambda: _announce(home, port, as_json))
        if not as_json:
            say("Stopped.")
        return code
    finally:
        lock.release()


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            raise ConfigError(
                f"Port {port} cannot be used ({error.strerror}); choose another with --port."
            ) from None


def _prepare_instance(home: Home) -> Mapping[str, str]:
    """Clean up after crashed runs, apply the pool limits, and return the environment for the servers."""
    with INTERRUPTS.exiting_at_once():
        from ingest_assets.defs.instance import apply_pools, environment, open_instance
        from ingest_assets.defs.orphans import fail_orphaned_runs

    with open_instance(home.layout) as instance:
        for run_id in fail_orphaned_runs(instance):
            warn(f"run {run_id} has no process any more; it was marked as failed and its pool slot released.")
        apply_pools(instance, home.settings.pools)
    return environment(home.layout)


def _is_answering(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((ADDRESS, port)) == 0


def _announce(home: Home, port: int, as_json: bool) -> None:
    address = f"http://{ADDRESS}:{port}"
    if as_json:
        pools = home.settings.pools.model_dump()
        print_json(
            {"url": address, "home": str(home.layout.home), "logs": str(home.layout.logs), "pools": pools}
        )
        return
    say(f"Web UI on {address}; Ctrl-C stops it.")
    if not home.sources():
        say("No folder is watched yet; add one with `ingest all --input FOLDER` or [sources] in ingest.toml.")


def _serve(home: Home, port: int, environment: Mapping[str, str], announce: Callable[[], None]) -> int:
    """Run all servers until one exits or a signal arrives, then stop all. Return the exit code.

    `announce` is called as soon as the web UI accepts connections.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    # Each server starts its own code server.
    module = ["-m", "ingest_assets.definitions"]
    commands = {
        "web-server": [_program("dagster-webserver"), "-h", ADDRESS, "-p", str(port), *module],
        "daemon": [_program("dagster-daemon"), "run", *module],
    }
    servers = [Server(name, line, home, environment) for name, line in commands.items()]

    def kill() -> None:
        for server in servers:
            server.kill()

    with INTERRUPTS.announcing(_STOPPING, kill):
        try:
            exited: list[Server] = []
            is_announced = False
            while not stop.wait(0.5) and not exited:
                exited = [server for server in servers if not server.is_running()]
                if not is_announced and not exited and _is_answering(port):
                    announce()
                    is_announced = True
            for server in exited:
                warn(f"ingest: the {server.name} exited unexpectedly; see {server.log}.")
            return 1 if exited else 0
        finally:
            for server in servers:
                server.ask_to_stop()
            for server in servers:
                server.stop(_STOP_SECONDS)


def _program(name: str) -> str:
    """Return the path of a Dagster command, installed next to this Python or on PATH."""
    folders = [sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]
    program = shutil.which(name, path=os.pathsep.join(folders))
    if program is None:
        raise ConfigError(
            f"{name}: not found next to {sys.executable} or on PATH; install dagster and dagster-webserver."
        )
    return program


class Server:
    """A child process that logs to a file of limited size and ends when its parent does."""

    def __init__(self, name: str, command: list[str], home: Home, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = home.layout.logs / f"{name}.log"
        self._process = subprocess.Popen(
            command,
            env=os.environ | environment,
            cwd=home.layout.home,
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
        """True until the process has ended."""
        return self._process.poll() is None

    def ask_to_stop(self) -> None:
        """Send SIGINT, like Ctrl-C."""
        if self.is_running():
            self._process.send_signal(signal.SIGINT)

    def stop(self, limit_seconds: float) -> None:
        """Wait for the server to end, then stop the rest of its group: the code server and the runs in it.

        Runs get SIGTERM: Dagster interrupts them and their finished documents are kept. Whatever is still
        running after the limit is killed.
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
        """Kill the server and its runs; their worker processes end with them."""
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _group(self) -> list[int]:
        """Return the running processes of the server's group, the server included."""
        pids = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                is_alive = process.status() != psutil.STATUS_ZOMBIE
                if os.getpgid(process.pid) == self._process.pid and is_alive:
                    pids.append(process.pid)
        return pids

    def _copy_output(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(self.log, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES, encoding="utf-8")
        assert self._process.stdout is not None  # opened as a pipe above
        for line in self._process.stdout:
            handler.emit(logging.makeLogRecord({"msg": _COLOURS.sub("", line.rstrip("\n"))}))
        handler.close()


def _end_with_parent() -> None:
    """Also end when the parent is killed: two daemons on one home would start runs twice."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
