"""Work items, plans and outcomes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from ingest_assets.core.errors import StageError, is_for_good


@dataclass(frozen=True, slots=True)
class Record:
    """What a table says of one item: which fingerprint it was made with, and how many rows it gave."""

    fingerprint: str
    rows: int


def is_current(record: Record | None, fingerprint: str) -> bool:
    """Done means equal fingerprints and at least one row. Resume and the asset checks both ask here."""
    return record is not None and record.fingerprint == fingerprint and record.rows >= 1


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One unit of a stage's work: small, immutable and picklable; bytes stay on disk."""

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
        """True when what is stored already answers this item."""
        return is_current(self.record, self.fingerprint)

    def is_known_to_fail(self) -> bool:
        """True when the very same item failed before, and for good.

        On hold, it is not asked why the item failed: others are to be tried again, not this one.
        """
        failure = self.known_failure
        return failure is not None and (self.on_hold or is_for_good(failure))


def retrying(items: Iterable[WorkItem], item_ids: Collection[str]) -> list[WorkItem]:
    """The items with the failures of the named ones forgotten and all other failed ones on hold."""
    return [
        replace(item, known_failure=None)
        if item.item_id in item_ids
        else replace(item, on_hold=item.known_failure is not None)
        for item in items
    ]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a stage should do, in the order its rows will stand. `items` is consumed lazily, once."""

    stage: str
    items: Iterable[WorkItem]
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ItemContext:
    """What a worker may know about its attempt; `anew` when nothing that is stored may spare the work."""

    attempt_no: int = 1
    workers: int = 1
    deadline_epoch_s: float | None = None
    anew: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter of this attempt; manifest, outcome and the UI show the sums."""
        self.counts[name] = self.counts.get(name, 0) + number


class Result(BaseModel):
    """What a worker reports for one item: counters and where its output rests, never the output."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int = 0
    outputs: tuple[str, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes in the store, under their sha256; `is_new` when they were not there before."""

    path: Path
    content_hash: str
    size_bytes: int
    is_new: bool


# What a stage run amounted to, in numbers that always add up.

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


# The steps that people run by name, in this order; each step is a job of its own.
Step = Literal["documents", "doctags", "admission", "chunks", "embeddings"]
STEPS: tuple[Step, ...] = get_args(Step)


# `timeout` and some supervisors send a signal to a process and then to its whole group: that is one press.
SAME_PRESS_S = 0.05
