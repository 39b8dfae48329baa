"""`run_stage`: run the items of a plan."""

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
    """The input of a stage run. `keep_backend` leaves the backend open for the next run."""

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
    """Run the items of a plan that must run; the outcome and the manifest have their results.

    A failed item is data. Exceptions are raised only for an interrupt (any `BaseException` in the caller's
    thread) and for an error of the plan itself, after the grace time of running items, the last rows of the
    manifest and `after_stage`; a second interrupt ends the grace time. The backend is always closed, except
    after a dry run and after a run with `keep_backend` without running items.

    At the time limit a process is killed. A thread cannot be killed: its item is abandoned, its late result
    is discarded, and too many abandoned threads cancel the stage.
    """
    if spec.options.dry_run:
        return dry_run(spec.plan, spec.options, spec.backend.workers, spec.workers_reason)
    return Coordinator(spec).run()
