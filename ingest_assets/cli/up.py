"""`ingest up`: the web UI and the daemon on this home, until Ctrl-C."""

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
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from typing import Annotated

import psutil
import typer

from ingest_assets.app.home import Home, open_home
from ingest_assets.cli.flags import ExperimentalFlag, HomeFlag, JsonFlag
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.signals import PRESSES
from ingest_assets.core.errors import ConfigError
from ingest_assets.storage.locks import FileLock

ADDRESS = "127.0.0.1"
_STOP_SECONDS = 30.0  # runs in the servers let their documents finish
_STOPPING = f"ingest: stopping; servers and runs get up to {_STOP_SECONDS:g} s, Ctrl-C again ends at once"
_LOG_BYTES = 10 * 1024 * 1024
_LOG_FILES = 3
_PR_SET_PDEATHSIG = 1  # of Linux' prctl; Python has no name for it
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

PortFlag = Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of the web UI.")]


def up(
    home: HomeFlag = None,
    port: PortFlag = 3000,
    experimental: ExperimentalFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Start the web UI and the daemon (sensor, schedule, run queue) on 127.0.0.1; Ctrl-C stops both."""
    here = open_home(home)
    here.validate()
    lock = FileLock(here.layout.up_lock)
    if not lock.try_acquire():
        raise ConfigError(f"{here.layout.home} is already up; stop that `ingest up` first.")
    try:
        _require_free(port)
        environment = _prepare_instance(here)
        _announce(here, port, as_json)
        return _serve(here, port, environment)
    finally:
        lock.release()


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            raise ConfigError(
                f"Port {port} cannot be used ({error.strerror}); give another with --port."
            ) from None


def _prepare_instance(home: Home) -> Mapping[str, str]:
    """What a crash left behind is cleared away; gives the variables by which servers find the instance."""
    with PRESSES.ending_at_once():
        from ingest_assets.defs.instance import apply_pools, environment, open_instance
        from ingest_assets.defs.orphans import settle_orphans

    with open_instance(home.layout) as instance:
        for run_id in settle_orphans(instance):
            warn(f"run {run_id} had lost its process; it is marked as failed and its pool slot is free.")
        apply_pools(instance, home.settings.pools)
    return environment(home.layout)


def _announce(home: Home, port: int, as_json: bool) -> None:
    address = f"http://{ADDRESS}:{port}"
    if as_json:
        pools = home.settings.pools.model_dump()
        print_json(
            {"url": address, "home": str(home.layout.home), "logs": str(home.layout.logs), "pools": pools}
        )
        return
    say(f"Web UI on {address} for {home.layout.home}; Ctrl-C stops it.")
    say(f"Logs: {home.layout.logs}")
    if not home.sources():
        say("No folder is watched yet: ingest all --input FOLDER, or [sources] in ingest.toml.")


def _serve(home: Home, port: int, environment: Mapping[str, str]) -> int:
    """Run all servers until one ends or a signal comes; then end all. Gives the exit code."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    # Each starts a code server of its own.
    module = ["-m", "ingest_assets.definitions"]
    commands = {
        "web-server": [_program("dagster-webserver"), "-h", ADDRESS, "-p", str(port), *module],
        "daemon": [_program("dagster-daemon"), "run", *module],
    }
    servers = [Server(name, line, home, environment) for name, line in commands.items()]

    def kill() -> None:
        for server in servers:
            server.kill()

    with PRESSES.answered(_STOPPING, kill):
        try:
            ended: list[Server] = []
            while not stop.wait(0.5) and not ended:
                ended = [server for server in servers if not server.is_running()]
            for server in ended:
                warn(f"ingest: the {server.name} ended by itself; its last words are in {server.log}.")
            return 1 if ended else 0
        finally:
            for server in servers:
                server.ask_to_stop()
            for server in servers:
                server.stop(_STOP_SECONDS)


def _program(name: str) -> str:
    """A command of Dagster's packages: beside this Python, or wherever a shell finds it."""
    places = [sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        raise ConfigError(
            f"{name}: not found beside {sys.executable} or on PATH; pip install dagster dagster-webserver."
        )
    return found


class Server:
    """One child: its output goes to a log of bounded size, and it ends when its parent does."""

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
        """Until it ends by itself or is stopped."""
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
