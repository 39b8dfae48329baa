"""The resources of assets: the home, and the runner for stages."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from ingest_assets.app.driver import COUNTS, REASON_TAG, start_batch
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.stage_run import Staged, StageRun, StageStopped, to_standard_error
from ingest_assets.core.errors import StageError
from ingest_assets.core.items import StageOutcome
from ingest_assets.defs.keys import require_batches
from ingest_assets.settings.read import settings_from_json
from ingest_assets.storage.table import Table

# Metadata is stored with each event of each run, and a batch can have thousands of failures.
_ERRORS_SHOWN = 20
_ERRORS_KEPT = 200


class StageRunConfig(dg.Config, RunOptions):
    """Options of one run, for the launchpad."""


class HomeResource(dg.ConfigurableResource):
    """The home of this deployment; an empty path means `INGEST_HOME`.

    `settings` is a complete settings tree as JSON; if empty, the home's settings file is read.
    """

    path: str = ""
    settings: str = ""
    _opened: Home | None = PrivateAttr(default=None)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Open the home again for each run. All steps of a run share it."""
        self._opened = None

    def open(self) -> Home:
        """Return the home; its settings are read at the first call."""
        if self._opened is None:
            settings = settings_from_json(self.settings) if self.settings else None
            self._opened = open_home(Path(self.path) if self.path else None, settings=settings)
        return self._opened


class StageRunner(dg.ConfigurableResource):
    """Runs one stage of one batch. Progress is shown in Dagster's log, as a bar or on standard error."""

    progress: str = "log"

    def run(
        self,
        home: Home,
        stage: str,
        read: Sequence[Table],
        config: StageRunConfig,
        context: dg.AssetExecutionContext,
    ) -> tuple[Staged, Mapping[str, Any]]:
        """Return the staged rows and further metadata for the web UI. A cancelled stage fails its step, with
        the same metadata as a finished one."""
        batch = context.partition_key
        require_batches(home, [batch])
        say = context.log.info if self.progress == "log" else to_standard_error
        run = StageRun(home, stage, batch, context.run.run_id, context.log.info, config, self.progress)
        extra: dict[str, Any] = {}
        if not GRAPH[stage].reads:
            extra |= start_batch(home, batch, context.run.tags.get(REASON_TAG), context.log.info, say)
        try:
            staged = run.stage_rows(read)
        except StageStopped as stopped:
            metadata = outcome_metadata(stopped.outcome, stopped.outcome.errors)
            raise dg.Failure(str(stopped), metadata=metadata, allow_retries=False) from None
        return staged, {**extra, **run.summary(staged)}


def outcome_metadata(outcome: StageOutcome, failures: Sequence[StageError]) -> dict[str, Any]:
    """Return what the web UI shows about a stage; it plots plain numbers over time."""
    errors = [error.model_dump(mode="json") for error in outcome.errors[:_ERRORS_KEPT]]
    metadata: dict[str, Any] = {
        **{name: getattr(outcome, name) for name in COUNTS},
        "known_failures": outcome.known_failures,
        "errors": dg.MetadataValue.json(errors),
        "wall_seconds": round(outcome.wall_s, 3),
        "items_per_second": round(outcome.items_per_s, 3),
        "queue_p50_seconds": round(outcome.queue_s.p50, 6),
        "queue_p95_seconds": round(outcome.queue_s.p95, 6),
        "exec_p50_seconds": round(outcome.exec_s.p50, 6),
        "exec_p95_seconds": round(outcome.exec_s.p95, 6),
        "workers": outcome.workers,
        "workers_reason": outcome.workers_reason,
    }
    if failures:
        lines = [f"- `{e.item_id}` {e.code}: {e.message}" for e in failures[:_ERRORS_SHOWN]]
        metadata["failures"] = dg.MetadataValue.md("\n".join(lines))
    return metadata


def staged_metadata(staged: Staged) -> dict[str, Any]:
    """Return the numbers of the outcome, and all failures of the batch, including those of earlier runs."""
    failures = [failure.error for failure in staged.commit.failures.values()]
    return {**outcome_metadata(staged.outcome, failures), "failed_in_this_batch": len(failures)}
