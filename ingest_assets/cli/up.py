"""`ingest up`: the web UI and the daemon on this home, until Ctrl-C."""

import signal
import socket
import threading
from pathlib import Path

from ingest_assets.app.home import Home, open_home
from ingest_assets.cli.interrupts import PRESSES
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.servers import Server, commands
from ingest_assets.core.errors import ConfigError
from ingest_assets.defs.instance import apply_pools, open_instance
from ingest_assets.defs.orphans import settle_orphans
from ingest_assets.storage.locks import FileLock

ADDRESS = "127.0.0.1"
_STOP_SECONDS = 30.0
_STOPPING = f"ingest: stopping; servers and runs get up to {_STOP_SECONDS:g} s, Ctrl-C again ends at once"


def serve(home: Path | None, port: int, *, as_json: bool) -> int:
    """Run the servers until Ctrl-C; gives the exit code."""
    here = open_home(home)
    here.validate()
    lock = FileLock(here.layout.up_lock)
    if not lock.try_acquire():
        raise ConfigError(f"{here.layout.home} is already up; stop that `ingest up` first.")
    try:
        _require_free(port)
        _prepare(here)
        _announce(here, port, as_json)
        return _serve(here, port)
    finally:
        lock.release()


def _prepare(home: Home) -> None:
    with open_instance(home.layout) as instance:
        for run_id in settle_orphans(instance):
            warn(f"run {run_id} had lost its process; it is marked as failed and its pool slot is free.")
        apply_pools(instance, home.settings.pools)


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


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            raise ConfigError(
                f"Port {port} cannot be used ({error.strerror}); give another with --port."
            ) from None


def _serve(home: Home, port: int) -> int:
    """Run all servers until one ends or a signal comes; then end all. Gives the exit code."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    servers = [Server(name, line, home.layout) for name, line in commands(ADDRESS, port).items()]
    with PRESSES.answered(_STOPPING, lambda: _kill(servers)):
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


def _kill(servers: list[Server]) -> None:
    for server in servers:
        server.kill()
