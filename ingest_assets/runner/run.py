"""`run_stage`: one public function that does everything around an item."""

import random
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from ingest_assets.core.items import Plan, StageOutcome, WorkItem
from ingest_assets.core.ports import ExecutionBackend, Hooks, Progress, Worker
from ingest_assets.runner.coordinator import Coordinator
from ingest_assets.runner.manifest import Manifest
from ingest_assets.runner.progress import NoProgress
from ingest_assets.runner.reporter import NO_HOOKS
from ingest_assets.runner.schedule import Clock, SystemClock, dry_run
from ingest_assets.runner.telemetry import Telemetry
from ingest_assets.settings.execution import StageOptions


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a stage run needs. `keep_backend` leaves the backend open for the next run."""

    plan: Plan
    worker: Worker
    options: StageOptions
    hooks: Hooks = NO_HOOKS
    _: KW_ONLY
    backend: ExecutionBackend
    keep_backend: bool = False
    manifest: Manifest | None = None
    progress: Progress = field(default_factory=NoProgress)
    telemetry: Telemetry = field(default_factory=Telemetry)
    run_id: str = ""
    workers_reason: str = ""
    quarantine: Callable[[WorkItem], None] | None = None
    clock: Clock = field(default_factory=SystemClock)
    rng: random.Random = field(default_factory=random.Random)


def run_stage(spec: RunSpec) -> StageOutcome:
    """Run the items of a plan that must run; what each came to is in the outcome and in the manifest.

    A failed item is data. Only an interrupt (any `BaseException` raised in the caller's thread) and a plan
    that raises come out as exceptions, after the running items had their grace time, the manifest was
    completed and `after_stage` was called; a second interrupt ends the grace time. The backend is closed on
    every way out, except by a dry run and by a run with `keep_backend` that leaves no item running.

    Time limits: a process is killed; a thread cannot be, so its item is abandoned, its late result is thrown
    away, and a stage with too many abandoned threads is cancelled.
    """
    if spec.options.dry_run:
        return dry_run(spec.plan, spec.options, spec.backend.workers, spec.workers_reason)
    return Coordinator(spec).run()
