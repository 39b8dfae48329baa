"""What a stage run amounted to, in numbers that always add up."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ingest_assets.model.errors import StageError

Verdict = Literal["run", "skip", "known_failure"]


class Percentiles(BaseModel):
    """Seconds at the 50th, 95th and 99th percentile; zero when nothing ran."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0


class StageOutcome(BaseModel):
    """`scheduled = succeeded + failed + cancelled`; `skipped` is counted apart."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    policy: str = "io"
    workers: int = 0
    workers_reason: str = ""
    scheduled: int = 0
    skipped: int = 0
    known_failures: int = Field(
        0, description="Of the skipped: items that failed before and would fail again."
    )
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    cancelled_reason: str | None = None
    rows: int = 0
    counts: dict[str, int] = Field(default_factory=dict)
    retries: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    items_per_s: float = 0.0
    queue_s: Percentiles = Percentiles()
    exec_s: Percentiles = Percentiles()
    errors: tuple[StageError, ...] = Field((), description="One per failed item: its last error.")
    warnings: tuple[str, ...] = Field((), description="What hooks or workers complained about.")
    verdicts: dict[str, Verdict] = Field(default_factory=dict, description="Filled by a dry run.")

    def adds_up(self) -> bool:
        """The promise every caller relies on."""
        return self.scheduled == self.succeeded + self.failed + self.cancelled
