"""Whether, when and how often an item runs: everything around an item, and nothing about what an item is.

`run.py` runs a plan; `coordinator.py` keeps the workers busy, `schedule.py` has order, retries and the error
budget, `attempt.py` one attempt and its errors, `manifest.py` the log of attempts; `reporter.py` tells
`progress.py`, `telemetry.py` and the hooks what others see of it.
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
