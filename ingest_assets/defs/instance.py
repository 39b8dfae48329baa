"""The Dagster instance of a home folder."""

import os
from pathlib import Path

import dagster as dg
from sqlalchemy.exc import IntegrityError

from ingest_assets.core.layout import Layout
from ingest_assets.settings.tree import PoolSettings
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.locks import FileLock

_COMMAND_FILE = "dagster-command.yaml"
# Steps of a command print to the terminal. Dagster's capture would hide the progress bar on standard error,
# and its helper processes print tracebacks at Ctrl-C. The last of two equal keys in YAML wins.
_NO_CAPTURE = """
compute_logs:
  module: dagster.core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


def environment(layout: Layout) -> dict[str, str]:
    """Return the variables that tell Dagster's processes the home; Dagster stores everything in `state/`."""
    return {
        "INGEST_HOME": str(layout.home),
        "DAGSTER_HOME": str(layout.state),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }


def open_instance(layout: Layout, *, for_command: bool = False) -> dg.DagsterInstance:
    """Open the instance that the web UI of this home also uses, and create it on first use.

    `for_command` is for runs inside a command, whose steps print to the terminal.
    """
    text = _write_instance_file(layout)
    os.environ.update(environment(layout))
    file = layout.instance_copy
    if for_command:
        file = layout.state / _COMMAND_FILE
        _write_if_changed(file, text + _NO_CAPTURE)
    # Two processes that create Dagster's SQLite files at the same time would damage them for good.
    lock = FileLock(layout.instance_lock)
    lock.acquire()
    try:
        return dg.DagsterInstance.from_config(str(layout.state), file.name)
    finally:
        lock.release()


def _write_instance_file(layout: Layout) -> str:
    """Copy the settings into `state/` if they changed: Dagster reads them only next to its storage."""
    custom = layout.instance_file
    origin = custom if custom.is_file() else shipped_instance_file()
    head = f"# Copied by `ingest` from {origin}\n# To change it, edit {custom} (and restart `ingest up`).\n"
    text = head + origin.read_text(encoding="utf-8")
    _write_if_changed(layout.instance_copy, text)
    return text


def _write_if_changed(file: Path, text: str) -> None:
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        with replacing(file) as scratch:
            scratch.write_text(text, encoding="utf-8")


def shipped_instance_file() -> Path:
    """Return the `dagster.yaml` of the project, or its copy inside an installed package."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "dagster.yaml"
    return installed if installed.is_file() else package.parent / "dagster.yaml"


def apply_pools(instance: dg.DagsterInstance, pools: PoolSettings) -> dict[str, int]:
    """Apply the pool limits of the settings; return those that changed."""
    storage = instance.event_log_storage
    current = {info.name: info.limit for info in storage.get_pool_limits()}
    limits = pools.model_dump()
    changed = {name: limit for name, limit in limits.items() if current.get(name) != limit}
    for name, limit in changed.items():
        try:
            storage.set_concurrency_slots(name, limit)
        except IntegrityError:  # another process has just added the pool; set it again
            storage.set_concurrency_slots(name, limit)
    return changed
