"""Run the items of a stage, whatever an item is: order, retries, limits, reports.

`run.py` runs a plan. `coordinator.py` is its loop, `schedule.py` has order, retries and the error budget,
`attempt.py` one attempt and its errors, `manifest.py` the log of attempts. `reporter.py` passes events to
`progress.py`, `telemetry.py` and the hooks.
"""

from ingest_assets.runner.attempt import Quarantine
from ingest_assets.runner.manifest import Manifest, ManifestRow, read_manifest, read_newest
from ingest_assets.runner.progress import BarProgress, LogProgress, NoProgress
from ingest_assets.runner.reporter import NO_HOOKS, QuietHooks
from ingest_assets.runner.run import RunSpec, run_stage
from ingest_assets.runner.schedule import Clock, SystemClock
from ingest_assets.runner.telemetry import Telemetry

__all__ = [
    "NO_HOOKS",
    "BarProgress",
    "Clock",
    "LogProgress",
    "Manifest",
    "ManifestRow",
    "NoProgress",
    "Quarantine",
    "QuietHooks",
    "RunSpec",
    "SystemClock",
    "Telemetry",
    "read_manifest",
    "read_newest",
    "run_stage",
]
