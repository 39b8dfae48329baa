"""What an asset hands to the IO manager: rows staged as parts, and how to commit them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from ingest_assets.model.errors import StageError
from ingest_assets.model.outcomes import StageOutcome
from ingest_assets.storage.tables import Commit

COUNTS = ("scheduled", "skipped", "succeeded", "failed", "cancelled", "retries")
_ERRORS_SHOWN = 20
_ERRORS_KEPT = 200


def stage_stopped(outcome: StageOutcome) -> dg.Failure:
    """A cancelled stage as a failed step, with the same numbers as a finished one."""
    return dg.Failure(
        f"{outcome.stage} {outcome.cancelled_reason}. What is finished is kept; the next run continues.",
        metadata=outcome_metadata(outcome, outcome.errors),
        allow_retries=False,
    )


def outcome_metadata(outcome: StageOutcome, failures: Sequence[StageError]) -> dict[str, Any]:
    """What the Dagster UI shows of a stage; plain numbers are plotted over time."""
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


@dataclass(frozen=True)
class Staged:
    """A stage's finished work. The table's lock is held until the IO manager has committed it."""

    commit: Commit
    outcome: StageOutcome
    release: Callable[[], None]

    def as_metadata(self) -> dict[str, Any]:
        """The outcome's numbers, and what this batch has failed in all, earlier runs included."""
        failures = [failure.error for failure in self.commit.failures.values()]
        return {**outcome_metadata(self.outcome, failures), "failed_in_this_batch": len(failures)}
