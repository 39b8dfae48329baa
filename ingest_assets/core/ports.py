"""Where the rooms meet: protocols and duplicate claims, so that no middle room imports another."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ingest_assets.core.errors import StageError
from ingest_assets.core.items import Blob, ItemContext, Result, StageOutcome, WorkItem
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions, Kind

Call = Callable[[WorkItem, ItemContext], Any]


class Worker(Protocol):
    """What happens to one item. Picklable; raises `ItemError`s; opens heavy things where it runs."""

    def __call__(self, item: WorkItem, context: ItemContext) -> Result: ...


class Hooks(Protocol):
    """Calls around a stage and its items. An exception in a hook is a warning, never a failed item."""

    def before_stage(self, stage: str) -> None: ...
    def after_stage(self, outcome: StageOutcome) -> None: ...
    def before_item(self, item: WorkItem) -> None: ...
    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None: ...


class Progress(Protocol):
    """Someone who wants to know how far a stage is."""

    def start(self, stage: str, total: int | None) -> None: ...
    def update(self, done: int, succeeded: int, skipped: int, failed: int) -> None: ...
    def finish(self, outcome: StageOutcome) -> None: ...


class ExecutionBackend(Protocol):
    """Where attempts run. `submit` starts work at once or as soon as a worker is free.

    A future ends with the call's value, or with an `ItemError`: `ItemTimeout`, `WorkerDied`, `WorkerLost`,
    `ItemCancelled`. The time limit counts from when the item starts. `close` leaves no future open and may be
    called twice.
    """

    @property
    def workers(self) -> int:
        """How many items run at the same time."""
        ...

    @property
    def abandoned(self) -> int:
        """Workers that are lost to items past their time limit and cannot be stopped."""
        ...

    @property
    def broken(self) -> str | None:
        """Why no item can run here any more, in words for the stage's reason to stop."""
        ...

    @property
    def is_inline(self) -> bool:
        """True where `submit` itself makes the call; elsewhere it returns at once."""
        ...

    def submit(
        self,
        call: Call,
        item: WorkItem,
        context: ItemContext,
        timeout_s: float,
    ) -> Future[Any]: ...
    def close(self, grace_s: float) -> None: ...


class Download(Protocol):
    """Bytes on their way into a store. What was written before a crash may be there again next time."""

    @property
    def size_bytes(self) -> int:
        """Bytes here already; above zero at the start when an earlier download broke off."""
        ...

    @property
    def note(self) -> Mapping[str, str]:
        """What the earlier download left word of."""
        ...

    def restart(self, note: Mapping[str, str] | None) -> None:
        """Begin at zero; without a note, nothing is kept if this download breaks off too."""
        ...

    def write(self, content: bytes) -> None: ...
    def finish(self) -> Blob: ...


class BlobStore(Protocol):
    """Where fetched bytes rest, by their hash."""

    def find(self, content_hash: str) -> Path | None: ...
    def download(self, key: str) -> AbstractContextManager[Download]: ...


# Duplicate claims, by which the stages that read texts and the ledger that compares them meet.


@dataclass(frozen=True, slots=True)
class Claim:
    """What one document says. `basis` tells for which bytes and settings; `bands` only where alike counts."""

    doc_id: str
    seq: int
    basis: str
    text_hash: str | None
    is_eligible: bool
    signature: bytes | None = None
    bands: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """How a document stands to the others: the one whose text it repeats, or is alike to."""

    basis: str
    duplicate_of: str | None = None
    near_duplicate_of: str | None = None
    similarity: float | None = None
    is_eligible: bool = True


@dataclass(frozen=True, slots=True)
class Alike:
    """From which similarity on two documents are alike, and how the similarity of signatures is computed."""

    threshold: float
    similarity: Callable[[bytes, bytes], float]


class DenseProvider(Protocol):
    """An open model or endpoint that makes dense vectors; several threads may share it."""

    @property
    def model_id(self) -> str:
        """Which model, so that vectors of two never mix."""
        ...

    @property
    def dim(self) -> int: ...
    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> np.ndarray:
        """One row of `dim` float32 per text, in their order, not yet scaled to unit length.

        A text that cannot be embedded is an `ItemError` with its place as `detail["index"]`.
        """
        ...

    def close(self) -> None: ...


class DenseKind(Protocol):
    """A way to make dense vectors: what an entry point of the group `ingest_assets.dense_providers` names.

    The entry point is such an object, or a class or function that gives one without arguments.
    """

    def describe(self, options: DenseOptions) -> DenseFacts:
        """What these settings mean; `ConfigError` with one line when they cannot work. Opens nothing."""
        ...

    def open(self, options: DenseOptions) -> DenseProvider: ...
