"""Whether and how often: everything around an item, and nothing about what an item is."""

from ingest_assets.runner.clock import Clock, SystemClock
from ingest_assets.runner.hooks import NO_HOOKS, QuietHooks
from ingest_assets.runner.manifest import Manifest, ManifestRow, read_manifest, read_newest
from ingest_assets.runner.progress import BarProgress, LogProgress, NoProgress
from ingest_assets.runner.quarantine import Quarantine
from ingest_assets.runner.run import run_stage
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
    "SystemClock",
    "Telemetry",
    "read_manifest",
    "read_newest",
    "run_stage",
]
