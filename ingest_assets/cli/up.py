"""`ingest up`: the web UI and the daemon on this home, until Ctrl-C."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Annotated

import typer

from ingest_assets.cli import flags
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.defs.home import open_home
from ingest_assets.defs.instance import apply_pools, environment, open_instance
from ingest_assets.defs.orphans import settle_orphans
from ingest_assets.model.errors import ConfigError
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.locks import FileLock

_ADDRESS = "127.0.0.1"
_STOP_SECONDS = 30

PortFlag = Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of the web UI.")]


def up(home: flags.HomeFlag = None, port: PortFlag = 3000, as_json: flags.JsonFlag = False) -> None:
    """Start the web UI and the daemon (sensor, schedule, run queue) on 127.0.0.1; Ctrl-C stops both."""
    here = open_home(home)
    _ = here.stages
    lock = FileLock(here.layout.up_lock)
    if not lock.try_acquire():
        raise ConfigError(f"{here.layout.home} is already up; stop that `ingest up` first.")
    try:
        _require_free(port)
        instance = open_instance(here.layout)
        for run_id in settle_orphans(instance):
            warn(f"run {run_id} had lost its process; it is marked as failed and its pool slot is free.")
        apply_pools(instance, here.settings.pools)
        address = f"http://{_ADDRESS}:{port}"
        if as_json:
            print_json({"url": address, "home": str(here.layout.home), "pools": here.settings.pools.model_dump()})
        else:
            say(f"Web UI on {address} for {here.layout.home}; Ctrl-C stops it.")
        raise typer.Exit(_supervise(_commands(here.layout, port), here.layout))
    finally:
        lock.release()


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_ADDRESS, port))
        except OSError as error:
            raise ConfigError(f"Port {port} cannot be used ({error.strerror}); give another with --port.") from None


def _commands(layout: Layout, port: int) -> dict[str, list[str]]:
    module = ["-m", "ingest_assets.definitions"]
    return {
        "web server": [sys.executable, "-m", "dagster_webserver", "-h", _ADDRESS, "-p", str(port), *module],
        "daemon": [sys.executable, "-m", "dagster._daemon", "run", *module],
    }


def _supervise(commands: dict[str, list[str]], layout: Layout) -> int:
    """Run all until one ends or a signal comes; then end all. Gives the exit code."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    surroundings = os.environ | environment(layout)
    running = {
        name: subprocess.Popen(command, env=surroundings, start_new_session=True, cwd=layout.home)
        for name, command in commands.items()
    }
    ended: list[str] = []
    while not stop.wait(0.5) and not ended:
        ended = [name for name, process in running.items() if process.poll() is not None]
    for name in ended:
        warn(f"ingest: the {name} ended with code {running[name].returncode}; stopping.")
    _end(list(running.values()))
    return 1 if ended else 0


def _end(processes: list["subprocess.Popen[bytes]"]) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + _STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
