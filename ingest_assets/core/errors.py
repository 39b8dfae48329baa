"""What can go wrong, as types: category, code and `retryable` belong to the class, never to a message."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Category = Literal[
    "input", "config", "runtime", "timeout", "io", "provider", "contract", "cancelled", "unknown"
]


class IngestError(Exception):
    """A fault this product explains in one line: what, where, what to do."""


class ConfigError(IngestError):
    """A setting or a command-line value is wrong; nothing was started."""


class TableMissing(IngestError):
    """A table that is needed has not been made yet."""


class ItemError(IngestError):
    """One item failed. Subclasses say how; instances say which and why."""

    category: Category = "unknown"
    code: str = "E_UNKNOWN"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.detail = dict(detail or {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors cross process boundaries; keyword-only constructors would not survive the default."""
        return _rebuild, (type(self), str(self), self.detail)


def _rebuild(kind: type[ItemError], message: str, detail: dict[str, Any]) -> ItemError:
    return kind(message, detail=detail)


class ItemTimeout(ItemError):
    """The item ran past its time limit."""

    category = "timeout"
    code = "E_TIMEOUT"
    retryable = True


class WorkerDied(ItemError):
    """The process that worked on the item ended: a crash in native code, or the out-of-memory killer."""

    category = "runtime"
    code = "E_WORKER_DIED"
    retryable = True


class WorkerLost(ItemError):
    """The machine or the actor that worked on the item is gone; the item itself is not to blame."""

    category = "runtime"
    code = "E_WORKER_LOST"
    retryable = True


class MemoryExceeded(ItemError):
    """The item needed more memory than one worker may have; again it would need as much."""

    category = "runtime"
    code = "E_RESOURCE_MEMORY"


class ItemCancelled(ItemError):
    """The stage ended before the item could."""

    category = "cancelled"
    code = "E_CANCELLED"
    retryable = True


class SubmitFailed(ItemError):
    """The backend did not take the item: it does not pickle, or the backend is closed."""

    category = "runtime"
    code = "E_EXECUTION_SUBMIT"


class QuarantineFailed(ItemError):
    """What a forced item would overwrite could not be moved away, so the item did not run."""

    category = "io"
    code = "E_QUARANTINE"


class DocumentMissing(ItemError):
    """The file was there when the folder was scanned and is not there now."""

    category = "input"
    code = "E_DOCUMENT_MISSING"
    retryable = True


class NotAcquired(ItemError):
    """The queue has given a document up; the failure is the one of its last attempt.

    Only who queues it again makes a further attempt: a run does not, whatever the category.
    """

    code = "E_NOT_ACQUIRED"

    def __init__(self, message: str, *, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, detail=detail)
        self.category = self.detail.get("category", self.category)
        self.code = self.detail.get("code", self.code)


class NotAFile(ItemError):
    """A path that names a folder, a device or a pipe where a document is wanted."""

    category = "input"
    code = "E_NOT_A_FILE"


class DocumentChanged(ItemError):
    """The file's bytes are not the ones the ledger knows; the next scan sees the new ones."""

    category = "input"
    code = "E_DOCUMENT_CHANGED"
    retryable = True


class DocumentUnreadable(ItemError):
    """The operating system refused to give the file's bytes."""

    category = "io"
    code = "E_DOCUMENT_UNREADABLE"
    retryable = True


class ContractBroken(ItemError):
    """A stage produced rows that break its own table's rules."""

    category = "contract"
    code = "E_CONTRACT"


class TableDamaged(ItemError):
    """A table of which not all can be read: a bad disk, or a file that something else has written to."""

    category = "io"
    code = "E_TABLE_DAMAGED"

    @classmethod
    def at(cls, path: Path, why: Exception) -> "TableDamaged":
        """Named by its file, with the first line of what its reader says."""
        reason = next(iter(str(why).splitlines()), "") or type(why).__name__
        return cls(
            f"{path} is damaged ({reason}); remove it and run `ingest all`, which makes it anew.",
            detail={"path": str(path)},
        )

    @property
    def path(self) -> Path:
        return Path(self.detail["path"])


class StageError(BaseModel):
    """An item's failure as a record: what manifests, footers and the failure inbox hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    item_id: str
    category: Category
    code: str
    message: str
    retryable: bool
    detail: dict[str, Any] = Field(default_factory=dict)

    @field_validator("message")
    @classmethod
    def _storable(cls, message: str) -> str:
        """Lone surrogates, from broken documents and file names, have no UTF-8 form."""
        return message.encode("utf-8", "backslashreplace").decode()

    @classmethod
    def of(cls, error: BaseException, *, stage: str, item_id: str) -> "StageError":
        """Classify by type. An error this product does not know is not retried."""
        if isinstance(error, MemoryError):
            error = MemoryExceeded("the machine gave the item no more memory")
        if not isinstance(error, ItemError):
            error = ItemError(f"{type(error).__name__}: {error}")
        return cls(
            stage=stage,
            item_id=item_id,
            category=error.category,
            code=error.code,
            message=str(error),
            retryable=error.retryable,
            detail=error.detail,
        )


def is_given_up(error: StageError) -> bool:
    """True for a document that the queue has given up."""
    return bool(error.detail.get("given_up"))


def is_for_good(error: StageError) -> bool:
    """True for a failure that no run tries again by itself: the item's own fault, or given up.

    Whatever else fails may be mended outside: a missing library, a full disk, an endpoint that gives other
    vectors than it promised, a bug. Only bad input stays bad.
    """
    return is_given_up(error) or (error.category == "input" and not error.retryable)
