"""Work items, plans and outcomes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from ingest_assets.core.errors import StageError, is_permanent


@dataclass(frozen=True, slots=True)
class Record:
    """A table's entry for one item: the fingerprint of its rows, and their number."""

    fingerprint: str
    rows: int


def is_current(record: Record | None, fingerprint: str) -> bool:
    """Return True if the fingerprints are equal and there is at least one row."""
    return record is not None and record.fingerprint == fingerprint and record.rows >= 1


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One unit of a stage's work: small, immutable and picklable. Content stays in files."""

    item_id: str
    fingerprint: str
    cfg_hash: str = ""
    input_paths: tuple[str, ...] = ()
    output_paths: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    cost_hint: float = 1.0
    record: Record | None = None
    known_failure: StageError | None = None
    on_hold: bool = False

    def satisfies(self) -> bool:
        """Return True if the stored rows are current."""
        return is_current(self.record, self.fingerprint)

    def is_known_to_fail(self) -> bool:
        """Return True if this item failed before with the same fingerprint and must not run again.

        That is a permanent failure, or any failure while a run retries other items (`on_hold`).
        """
        failure = self.known_failure
        return failure is not None and (self.on_hold or is_permanent(failure))


def select_for_retry(items: Iterable[WorkItem], item_ids: Collection[str]) -> list[WorkItem]:
    """Return the items with the failures of `item_ids` cleared and all other failed items on hold."""
    return [
        replace(item, known_failure=None)
        if item.item_id in item_ids
        else replace(item, on_hold=item.known_failure is not None)
        for item in items
    ]


@dataclass(frozen=True, slots=True)
class Plan:
    """The items of a stage run, in the order of their rows. `items` is consumed lazily, once."""

    stage: str
    items: Iterable[WorkItem]
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ItemContext:
    """A worker's information about its attempt. With `force`, stored results must not be reused."""

    attempt_no: int = 1
    workers: int = 1
    deadline_epoch_s: float | None = None
    force: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, number: int = 1) -> None:
        """Increase a counter of this attempt; manifest, outcome and UI show the sums."""
        self.counts[name] = self.counts.get(name, 0) + number


class Result(BaseModel):
    """A worker's report on one item: counters and output paths, never the output itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int = 0
    outputs: tuple[str, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored file, named by its sha256; `is_new` if the store did not have it before."""

    path: Path
    content_hash: str
    size_bytes: int
    is_new: bool


# The result of a stage run.

Verdict = Literal["run", "skip", "known_failure"]


class Percentiles(BaseModel):
    """Seconds at the 50th, 95th and 99th percentile; zero if nothing ran."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0


class StageOutcome(BaseModel):
    """Counts and times of a stage run: `scheduled = succeeded + failed + cancelled`, without `skipped`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    policy: str = "io"
    workers: int = 0
    workers_reason: str = ""
    scheduled: int = 0
    skipped: int = 0
    known_failures: int = Field(0, description="Skipped items that failed before and are not retried.")
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
    errors: tuple[StageError, ...] = Field((), description="The last error of each failed item.")
    warnings: tuple[str, ...] = Field((), description="Warnings of hooks and workers.")
    verdicts: dict[str, Verdict] = Field(default_factory=dict, description="Filled by a dry run.")


# The steps of the command line, in order; each is also a Dagster job.
Step = Literal["documents", "doctags", "admission", "chunks", "embeddings"]
STEPS: tuple[Step, ...] = get_args(Step)


# `timeout` and some supervisors signal a process and then its whole group: both count as one signal.
SIGNAL_DEBOUNCE_S = 0.05
