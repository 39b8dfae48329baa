"""What a stage run is given, in one place."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from ingest_assets.model.items import Plan, WorkItem
from ingest_assets.model.options import StageOptions
from ingest_assets.model.ports import ExecutionBackend, Hooks, Progress, Worker
from ingest_assets.runner.clock import Clock
from ingest_assets.runner.manifest import Manifest
from ingest_assets.runner.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Setup:
    """The arguments of `run_stage`, with its defaults filled in."""

    plan: Plan
    worker: Worker
    options: StageOptions
    hooks: Hooks
    backend: ExecutionBackend
    manifest: Manifest | None
    progress: Progress
    telemetry: Telemetry
    run_id: str
    workers_reason: str
    quarantine: Callable[[WorkItem], None] | None
    clock: Clock
    rng: random.Random

    @property
    def stage(self) -> str:
        """The stage's name."""
        return self.plan.stage
