"""Runs of a home in this process, as commands make them."""

from collections.abc import Sequence
from typing import Any

from ingest_assets.app import driver
from ingest_assets.app.home import Home
from ingest_assets.defs.in_process import InProcess


def run_batches(
    home: Home, stages: Sequence[str], options: dict[str, Any], *, reason: str = "test", **more: Any
) -> driver.RunReport:
    """Run what is due, through Dagster."""
    with InProcess(home) as executor:
        return driver.run_batches(home, stages, options, executor, reason=reason, **more)
