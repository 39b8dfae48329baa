"""The Dagster instance of a home folder."""

import os
from pathlib import Path

import dagster as dg

from ingest_assets.config import PoolSettings
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.layout import Layout


def environment(layout: Layout) -> dict[str, str]:
    """The variables by which Dagster's processes find the home. Dagster keeps all it stores in `state/`."""
    return {
        "INGEST_HOME": str(layout.home),
        "DAGSTER_HOME": str(layout.state),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }


def open_instance(layout: Layout) -> dg.DagsterInstance:
    """The instance that the web UI of this home uses too; made on first use."""
    _write_instance_file(layout)
    os.environ.update(environment(layout))
    return dg.DagsterInstance.get()


def _write_instance_file(layout: Layout) -> None:
    """Dagster reads its settings only beside its storage, so `state/` gets a copy whenever they changed."""
    own = layout.instance_file
    origin = own if own.is_file() else shipped_instance_file()
    head = f"# Copied by `ingest` from {origin}\n# To change it, edit {own} (and restart `ingest up`).\n"
    text = head + origin.read_text(encoding="utf-8")
    copy = layout.instance_copy
    if not copy.is_file() or copy.read_text(encoding="utf-8") != text:
        with replacing(copy) as scratch:
            scratch.write_text(text, encoding="utf-8")


def shipped_instance_file() -> Path:
    """`dagster.yaml` of the project, or its copy inside an installed package."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "dagster.yaml"
    return installed if installed.is_file() else package.parent / "dagster.yaml"


def apply_pools(instance: dg.DagsterInstance, pools: PoolSettings) -> dict[str, int]:
    """Put the settings' pool limits in place; gives what was changed."""
    current = {info.name: info.limit for info in instance.event_log_storage.get_pool_limits()}
    wanted = pools.model_dump()
    changed = {name: limit for name, limit in wanted.items() if current.get(name) != limit}
    for name, limit in changed.items():
        instance.event_log_storage.set_concurrency_slots(name, limit)
    return changed
