"""The connection to a Ray cluster: one per process, to an address or to a cluster of its own."""

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

from ingest_assets.backends.workers import MIB, Machine, probe
from ingest_assets.model.errors import ConfigError, IngestError

# Only small references cross the wire, so the object store may be the smallest that Ray takes.
_OBJECT_STORE_BYTES = 100 * MIB
# Ray must not start a cluster where ours was lost, nor report home.
_DEFAULTS = {"RAY_ENABLE_AUTO_CONNECT": "0", "RAY_USAGE_STATS_ENABLED": "0"}
_CLIENT = "ray://"
_REACH_LIMIT_S = 10.0

_address: str | None = None


def import_ray() -> ModuleType:
    """Ray, or a line that says how to get it and how to do without."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "execution.backend: ray is not installed; install it with `pip install 'ingest-assets[ray]'`, "
            'or set execution.backend = "local".'
        ) from None
    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


def connect(address: str) -> None:
    """Be connected to the cluster at an address; an empty one means a cluster that this process starts.

    Who has connected this process before (a notebook, a test) keeps the connection.
    """
    global _address
    ray = import_ray()
    if ray.is_initialized():
        if (_address is None or _address == address) and is_alive():
            return
        disconnect()
    options = {"namespace": "ingest", "log_to_driver": False, "logging_level": logging.ERROR}
    if not address:
        machine = probe()
        options |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
        options |= {"num_cpus": machine.cores, "configure_logging": False}
    try:
        _require_listener(address)
        with _keeping_sigterm():
            ray.init(address=address or "local", **options)
    except (ConnectionError, TimeoutError, ValueError, RuntimeError, OSError) as error:
        raise IngestError(_explain(address, error)) from error
    _address = address


def _require_listener(address: str) -> None:
    """Ask first whether anybody listens: Ray itself tries for minutes."""
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_LIMIT_S).close()


@contextlib.contextmanager
def _keeping_sigterm() -> Iterator[None]:
    """Ray takes SIGTERM for itself; who runs us has plans of their own for it."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _explain(address: str, error: Exception) -> str:
    why = _first_line(error)
    if not address:
        return f"execution.backend: no Ray cluster can be started here ({why})."
    return (
        f"execution.address: no Ray cluster can be used at {address!r} ({why}); check the address, that Ray "
        "and Python have the same versions there, and RAY_AUTH_MODE=token if the cluster asks for a token."
    )


def disconnect() -> None:
    """Leave the cluster; one of our own ends."""
    global _address
    import_ray().shutdown()
    _address = None


def is_alive() -> bool:
    """True when the head answers and knows of a node that lives."""
    ray = import_ray()
    if not ray.is_initialized():
        return False
    try:
        _require_listener(_head_address(ray))
        return any(node["Alive"] for node in ray.nodes())
    except (OSError, RuntimeError, ray.exceptions.RayError):
        return False


def _head_address(ray: ModuleType) -> str:
    if _address is not None and is_client(_address):
        return _address
    address: str = ray.get_runtime_context().gcs_address
    return address


def is_client(address: str) -> bool:
    """True for addresses that go through Ray Client, a proxy with limits of its own."""
    return address.startswith(_CLIENT)


def owns_cluster() -> bool:
    """True when this process started its cluster, so that nobody else's claims count there."""
    return _address == ""


def cluster_machine() -> Machine:
    """What the connected cluster has in all; a cluster of our own has what this machine may use."""
    found = import_ray().cluster_resources()
    gpus = int(found.get("GPU", 0))
    if owns_cluster():
        return replace(probe(), gpus=gpus)
    return Machine(max(1, int(found.get("CPU", 0))), int(found.get("memory", 0)) // MIB, gpus)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
