"""Errors as types: category, code and `retryable` belong to the class, never to a message."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

Category = Literal[
    "input", "config", "runtime", "timeout", "io", "provider", "contract", "cancelled", "unknown"
]


class IngestError(Exception):
    """An error that is explained in one line: what happened, where, what to do."""


class ConfigError(IngestError):
    """A setting or a command-line value is invalid; nothing was started."""


class TableMissing(IngestError):
    """A required table does not exist yet."""


class ItemError(IngestError):
    """One item failed. The class says how, the instance says why."""

    category: Category = "unknown"
    code: str = "E_UNKNOWN"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.detail = dict(detail or {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without calling subclass constructors, since errors cross process boundaries."""
        return _rebuild, (type(self), str(self), self.detail)


def _rebuild(error_type: type[ItemError], message: str, detail: dict[str, Any]) -> ItemError:
    return error_type(message, detail=detail)


class ItemTimeout(ItemError):
    """The item exceeded its time limit."""

    category = "timeout"
    code = "E_TIMEOUT"
    retryable = True


class WorkerDied(ItemError):
    """The item's worker process ended: a crash in native code, or the out-of-memory killer."""

    category = "runtime"
    code = "E_WORKER_DIED"
    retryable = True


class WorkerLost(ItemError):
    """The machine or Ray actor that ran the item is gone. The item did not cause this."""

    category = "runtime"
    code = "E_WORKER_LOST"
    retryable = True


class MemoryExceeded(ItemError):
    """The item needed more memory than one worker may use. A retry would need the same."""

    category = "runtime"
    code = "E_RESOURCE_MEMORY"


class ItemCancelled(ItemError):
    """The stage stopped before the item finished."""

    category = "cancelled"
    code = "E_CANCELLED"
    retryable = True


class SubmitFailed(ItemError):
    """A backend could not start a job: the work cannot be pickled, or the backend is closed or broken."""

    category = "runtime"
    code = "E_EXECUTION_SUBMIT"


class ResultTimeout(ItemError):
    """A job has no result yet. It goes on; ask for its result again."""

    category = "timeout"
    code = "E_EXECUTION_TIMEOUT"
    retryable = True


class JobNotFound(ItemError):
    """The backend does not know the job id, or has already returned the job's result."""

    category = "contract"
    code = "E_EXECUTION_NOT_FOUND"


class QuarantineFailed(ItemError):
    """A forced item did not run, because its old output could not be moved to quarantine."""

    category = "io"
    code = "E_QUARANTINE"


class DocumentMissing(ItemError):
    """The file existed when the folder was scanned and does not exist now."""

    category = "input"
    code = "E_DOCUMENT_MISSING"
    retryable = True


class NotAcquired(ItemError):
    """The queue has abandoned a document. Category and code are those of its last attempt.

    A run does not retry it; it must be queued again.
    """

    code = "E_NOT_ACQUIRED"

    def __init__(self, message: str, *, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, detail=detail)
        self.category = self.detail.get("category", self.category)
        self.code = self.detail.get("code", self.code)


class NotAFile(ItemError):
    """The path is a folder, a device or a pipe, not a regular file."""

    category = "input"
    code = "E_NOT_A_FILE"


class DocumentChanged(ItemError):
    """The file's content differs from the ledger's hash. The next scan records the new content."""

    category = "input"
    code = "E_DOCUMENT_CHANGED"
    retryable = True


class DocumentUnreadable(ItemError):
    """The operating system could not read the file."""

    category = "io"
    code = "E_DOCUMENT_UNREADABLE"
    retryable = True


class ContractBroken(ItemError):
    """A stage produced rows that violate the rules of its table."""

    category = "contract"
    code = "E_CONTRACT"


class TableDamaged(ItemError):
    """Part of a table cannot be read: a bad disk, or another program wrote to the file."""

    category = "io"
    code = "E_TABLE_DAMAGED"

    @classmethod
    def at(cls, path: Path, cause: Exception) -> "TableDamaged":
        """Return an error with the path and the first line of the cause."""
        reason = next(iter(str(cause).splitlines()), "") or type(cause).__name__
        return cls(
            f"{path} is damaged ({reason}). Remove it and run `ingest all` to rebuild it.",
            detail={"path": str(path)},
        )

    @property
    def path(self) -> Path:
        return Path(self.detail["path"])


T = TypeVar("T")


def caught(
    call: Callable[[], T], kinds: tuple[type[BaseException], ...] = (Exception,)
) -> tuple[T | None, BaseException | None]:
    """Return the value of foreign code (a stage, a hook, submitted work), or what it raised."""
    try:
        return call(), None
    except kinds as error:  # whatever it raises must not end the run; interrupts are no `Exception`
        return None, error


def item_error(error: BaseException) -> ItemError:
    """Return the error itself, or an `ItemError` with its type and text."""
    if isinstance(error, ItemError):
        return error
    if isinstance(error, MemoryError):
        return MemoryExceeded("the machine is out of memory")
    return ItemError(f"{type(error).__name__}: {error}")


class StageError(BaseModel):
    """An item's failure as stored in manifests, table footers and the failure inbox."""

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
        """Escape lone surrogates (from broken documents and file names), which UTF-8 cannot encode."""
        return message.encode("utf-8", "backslashreplace").decode()

    @classmethod
    def of(cls, error: BaseException, *, stage: str, item_id: str) -> "StageError":
        """Classify an error by its type. Unknown errors are not retried."""
        classified = item_error(error)
        return cls(
            stage=stage,
            item_id=item_id,
            category=classified.category,
            code=classified.code,
            message=str(classified),
            retryable=classified.retryable,
            detail=classified.detail,
        )


def is_abandoned(error: StageError) -> bool:
    """Return True for a document that the queue has abandoned."""
    return bool(error.detail.get("given_up"))


def is_permanent(error: StageError) -> bool:
    """Return True for a failure that runs do not retry: invalid input, or abandoned by the queue.

    All other causes can be fixed from outside: a missing library, a full disk, a wrong endpoint, a bug.
    """
    return is_abandoned(error) or (error.category == "input" and not error.retryable)
