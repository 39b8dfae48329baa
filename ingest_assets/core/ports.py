"""Protocols and duplicate claims that rooms share, so that no middle room imports another."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ingest_assets.core.errors import StageError
from ingest_assets.core.items import Blob, ItemContext, Result, StageOutcome, WorkItem
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions, TextKind

# What a backend runs. Processes and Ray pickle it: a top-level function, or a `functools.partial` of one.
Work = Callable[[], Any]


class Worker(Protocol):
    """Processes one item. Picklable; raises `ItemError`; opens models and other large objects lazily."""

    def __call__(self, item: WorkItem, context: ItemContext) -> Result: ...


class Hooks(Protocol):
    """Callbacks around a stage and its items. An exception in a hook becomes a warning, not a failed item."""

    def before_stage(self, stage: str) -> None: ...
    def after_stage(self, outcome: StageOutcome) -> None: ...
    def before_item(self, item: WorkItem) -> None: ...
    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None: ...


class Progress(Protocol):
    """Receives the progress of a stage."""

    def start(self, stage: str, total: int | None) -> None: ...
    def update(self, done: int, succeeded: int, skipped: int, failed: int) -> None: ...
    def finish(self, outcome: StageOutcome) -> None: ...


class ExecutionBackend(Protocol):
    """Runs work on workers: `submit` starts a job, `get_result` waits for it and returns its result."""

    @property
    def workers(self) -> int:
        """How many jobs run at the same time."""
        ...

    @property
    def abandoned(self) -> int:
        """Workers lost to jobs that exceeded their time limit and cannot be stopped."""
        ...

    @property
    def broken(self) -> str | None:
        """Why no job can run here any more, worded as the reason for which a stage stops."""
        ...

    @property
    def is_inline(self) -> bool:
        """True if `submit` runs the work itself; other backends return at once."""
        ...

    def submit(self, work: Work, timeout_s: float = 0.0, on_end: Callable[[str], None] | None = None) -> str:
        """Start work now, or as soon as a worker is free, and return the job id.

        The time limit `timeout_s` counts from the start of the work; 0 means none. `on_end` gets the job id
        when there is a result; it is called on any thread and must return quickly. Raises `SubmitFailed`.
        """
        ...

    def get_result(self, job_id: str, timeout: float | None = None) -> Any:
        """Wait for the result, return it and release the job id; raise what the work raised.

        What is not an `ItemError` is raised as one. A job also ends with `ItemTimeout`, `WorkerDied`,
        `WorkerLost`, `MemoryExceeded` or `ItemCancelled`. Raises `ResultTimeout` if there is no result after
        `timeout` seconds (the job goes on), and `JobNotFound` for an unknown or released id.
        """
        ...

    def cancel(self, job_id: str) -> bool:
        """Cancel a job that has not started; False if it has."""
        ...

    def close(self, grace_s: float = 0.0) -> None:
        """Let running jobs finish for `grace_s`, then stop them. Every job has a result afterwards."""
        ...


class Download(Protocol):
    """A download into a store. It may continue what an interrupted download has written."""

    @property
    def size_bytes(self) -> int:
        """Bytes written so far; above zero at the start if this continues an earlier download."""
        ...

    @property
    def note(self) -> Mapping[str, str]:
        """The note of the earlier download, as passed to `restart`."""
        ...

    def restart(self, note: Mapping[str, str] | None) -> None:
        """Discard what is written. Without a note, an interrupted download is not kept."""
        ...

    def write(self, content: bytes) -> None: ...
    def finish(self) -> Blob: ...


class BlobStore(Protocol):
    """Storage of fetched files by their hash."""

    def find(self, content_hash: str) -> Path | None: ...
    def download(self, key: str) -> AbstractContextManager[Download]: ...


# Duplicate claims: stages compute them from texts, the ledger compares them.


@dataclass(frozen=True, slots=True)
class Claim:
    """Hashes of a document's text under `fingerprint`; `bands` find near duplicates."""

    doc_id: str
    seq: int
    fingerprint: str
    text_hash: str | None
    is_eligible: bool
    signature: bytes | None = None
    bands: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DuplicateStatus:
    """The earlier document whose text a document repeats or nearly repeats, if any."""

    fingerprint: str
    duplicate_of: str | None = None
    near_duplicate_of: str | None = None
    similarity: float | None = None
    is_eligible: bool = True


@dataclass(frozen=True, slots=True)
class SimilarityRule:
    """The similarity from which two documents are near duplicates, and how to compute it from signatures."""

    threshold: float
    similarity: Callable[[bytes, bytes], float]


class DenseProvider(Protocol):
    """An open model or endpoint that computes dense vectors; threads may share it."""

    @property
    def model_id(self) -> str:
        """Identity of the model; vectors of different models are never mixed."""
        ...

    @property
    def dim(self) -> int: ...
    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> np.ndarray:
        """Return one row of `dim` float32 values per text, in order, not yet scaled to unit length.

        Raise `ItemError` for a text that cannot be embedded, with its position in `detail["index"]`.
        """
        ...

    def close(self) -> None: ...


class DenseProviderFactory(Protocol):
    """Describes and opens a dense provider. Entry points of `ingest_assets.dense_providers` name one.

    The entry point is such an object, or a class or function that returns one without arguments.
    """

    def describe(self, options: DenseOptions) -> DenseFacts:
        """Resolve the settings without opening the model; one-line `ConfigError` if they are invalid."""
        ...

    def open(self, options: DenseOptions) -> DenseProvider: ...
