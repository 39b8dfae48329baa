"""The Dagster instance of a home folder."""

import os
from pathlib import Path

import dagster as dg

from ingest_assets.config import PoolSettings
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.layout import Layout


def environment(layout: Layout) -> dict[str, str]:
    """The variables by which Dagster's processes find the home."""
    return {
        "INGEST_HOME": str(layout.home),
        "INGEST_STATE": str(layout.state),
        "INGEST_LOGS": str(layout.logs),
        "DAGSTER_HOME": str(layout.home),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }


def open_instance(layout: Layout) -> dg.DagsterInstance:
    """The instance that the web UI of this home uses too; made on first use."""
    layout.state.mkdir(parents=True, exist_ok=True)
    if not layout.instance_file.is_file():
        with replacing(layout.instance_file) as scratch:
            scratch.write_bytes(shipped_instance_file().read_bytes())
    os.environ.update(environment(layout))
    return dg.DagsterInstance.get()


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
