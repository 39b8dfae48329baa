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
# Steps of a command print to the terminal: Dagster's capture takes standard error away from a live bar, and
# its helpers complain at Ctrl-C. A key that comes twice in YAML counts as it comes last.
_NO_CAPTURE = """
compute_logs:
  module: dagster.core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


def environment(layout: Layout) -> dict[str, str]:
    """The variables by which Dagster's processes find the home. Dagster keeps all it stores in `state/`."""
    return {
        "INGEST_HOME": str(layout.home),
        "DAGSTER_HOME": str(layout.state),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }


def open_instance(layout: Layout, *, for_command: bool = False) -> dg.DagsterInstance:
    """The instance that the web UI of this home uses too; made on first use.

    `for_command` is for runs inside a command, whose steps print to the terminal.
    """
    text = _write_instance_file(layout)
    os.environ.update(environment(layout))
    file = layout.instance_copy
    if for_command:
        file = layout.state / _COMMAND_FILE
        _write_if_other(file, text + _NO_CAPTURE)
    # Two that make Dagster's SQLite files at the same time leave them with two versions, for good.
    lock = FileLock(layout.instance_lock)
    lock.acquire()
    try:
        return dg.DagsterInstance.from_config(str(layout.state), file.name)
    finally:
        lock.release()


def _write_instance_file(layout: Layout) -> str:
    """Dagster reads its settings only beside its storage, so `state/` gets a copy whenever they changed."""
    own = layout.instance_file
    origin = own if own.is_file() else shipped_instance_file()
    head = f"# Copied by `ingest` from {origin}\n# To change it, edit {own} (and restart `ingest up`).\n"
    text = head + origin.read_text(encoding="utf-8")
    _write_if_other(layout.instance_copy, text)
    return text


def _write_if_other(file: Path, text: str) -> None:
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        with replacing(file) as scratch:
            scratch.write_text(text, encoding="utf-8")


def shipped_instance_file() -> Path:
    """`dagster.yaml` of the project, or its copy inside an installed package."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "dagster.yaml"
    return installed if installed.is_file() else package.parent / "dagster.yaml"


def apply_pools(instance: dg.DagsterInstance, pools: PoolSettings) -> dict[str, int]:
    """Put the settings' pool limits in place; gives what was changed."""
    storage = instance.event_log_storage
    current = {info.name: info.limit for info in storage.get_pool_limits()}
    wanted = pools.model_dump()
    changed = {name: limit for name, limit in wanted.items() if current.get(name) != limit}
    for name, limit in changed.items():
        try:
            storage.set_concurrency_slots(name, limit)
        except IntegrityError:  # another process added the pool at this moment; now it is there to be changed
            storage.set_concurrency_slots(name, limit)
    return changed
