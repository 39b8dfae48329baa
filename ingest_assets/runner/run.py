"""`run_stage`: one public function that does everything around an item."""

import random
from collections.abc import Callable

from ingest_assets.model.items import Plan, WorkItem
from ingest_assets.model.options import StageOptions
from ingest_assets.model.outcomes import StageOutcome
from ingest_assets.model.ports import ExecutionBackend, Hooks, Progress, Worker
from ingest_assets.runner.clock import Clock, SystemClock
from ingest_assets.runner.coordinator import Coordinator
from ingest_assets.runner.hooks import NO_HOOKS
from ingest_assets.runner.manifest import Manifest
from ingest_assets.runner.progress import NoProgress
from ingest_assets.runner.setup import Setup
from ingest_assets.runner.telemetry import Telemetry
from ingest_assets.runner.verdicts import dry_run


def run_stage(
    plan: Plan,
    worker: Worker,
    options: StageOptions,
    hooks: Hooks = NO_HOOKS,
    *,
    backend: ExecutionBackend,
    manifest: Manifest | None = None,
    progress: Progress | None = None,
    telemetry: Telemetry | None = None,
    run_id: str = "",
    workers_reason: str = "",
    quarantine: Callable[[WorkItem], None] | None = None,
    clock: Clock | None = None,
    rng: random.Random | None = None,
) -> StageOutcome:
    """Run the items of a plan that must run; what each came to is in the outcome and in the manifest.

    A failed item is data. Only an interrupt (any `BaseException` raised in the caller's thread) and a plan
    that raises come out as exceptions, after the running items had their grace time, the manifest was
    completed and `after_stage` was called; a second interrupt ends the grace time. The backend is used up:
    it is closed on every way out, except by a dry run.

    Time limits: a process is killed; a thread cannot be, so its item is abandoned, its late result is thrown
    away, and a stage with too many abandoned threads is cancelled.
    """
    if options.dry_run:
        return dry_run(plan, options, backend.workers, workers_reason)
    setup = Setup(
        plan=plan,
        worker=worker,
        options=options,
        hooks=hooks,
        backend=backend,
        manifest=manifest,
        progress=progress or NoProgress(),
        telemetry=telemetry or Telemetry(),
        run_id=run_id,
        workers_reason=workers_reason,
        quarantine=quarantine,
        clock=clock or SystemClock(),
        rng=rng or random.Random(),
    )
    return Coordinator(setup).run()
