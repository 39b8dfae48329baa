"""What an asset hands to the IO manager: rows staged as parts, and how to commit them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dagster as dg

from ingest_assets.model.outcomes import StageOutcome
from ingest_assets.storage.tables import Commit

_ERRORS_SHOWN = 20
_ERRORS_KEPT = 200


@dataclass(frozen=True)
class Staged:
    """A stage's finished work. The table's lock is held until the IO manager has committed it."""

    commit: Commit
    outcome: StageOutcome
    release: Callable[[], None]

    def as_metadata(self) -> dict[str, Any]:
        """What the Dagster UI shows of the run; plain numbers are plotted over time."""
        outcome = self.outcome
        failures = self.commit.failures
        errors = [error.model_dump(mode="json") for error in outcome.errors[:_ERRORS_KEPT]]
        counts = {
            name: getattr(outcome, name)
            for name in ("scheduled", "skipped", "succeeded", "failed", "retries")
        }
        metadata: dict[str, Any] = {
            **counts,
            "failed_in_this_batch": len(failures),
            "errors": dg.MetadataValue.json(errors),
            "wall_seconds": round(outcome.wall_s, 3),
            "items_per_second": round(outcome.items_per_s, 3),
            "workers": outcome.workers,
            "workers_reason": outcome.workers_reason,
        }
        if failures:
            lines = [
                f"- `{item}` {f.error.code}: {f.error.message}"
                for item, f in list(failures.items())[:_ERRORS_SHOWN]
            ]
            metadata["failures"] = dg.MetadataValue.md("\n".join(lines))
        return metadata
