"""The items of the queue: artifacts to acquire, leases on them, and how they end."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ingest_assets.core.errors import Category, StageError
from ingest_assets.intake.fetch import FetchError, checked_url
from ingest_assets.intake.schema import artifacts
from ingest_assets.settings.intake import ResolverName

State = Literal["queued", "in_progress", "done", "skipped", "error"]
FinalState = Literal["done", "skipped", "error"]
FINAL_STATES: frozenset[State] = frozenset(get_args(FinalState))

MAX_ID_BYTES = 2000  # PostgreSQL cannot index longer texts
MAX_META_DEPTH = 100  # json recurses, and deeper values could not be stored
_YEAR_10000 = 253_402_300_800  # seconds from 1970; milliseconds, a frequent slip, are far beyond


class NewArtifact(BaseModel):
    """An artifact to acquire: one line of a list, `{"id"?, "url" or "path", "resolver"?, "meta"?}`.

    Without an id, the URL in canonical form is the id. A key that is null counts as missing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    artifact_id: str = Field(alias="id", min_length=1, description="Stable and unique; becomes the doc_id.")
    url: str | None = Field(None, description="An http or https URL.")
    path: str | None = Field(None, min_length=1, description="A file.")
    resolver: ResolverName = Field(
        "", validate_default=False, description="Name for limits and quotas; default: http or file."
    )
    meta: dict[str, Any] = Field(default_factory=dict, description="Stored with the document, unchanged.")
    max_attempts: int | None = Field(None, ge=1, le=100, description="Overrides queue.max_job_attempts.")
    not_before: float | None = Field(
        None,
        lt=_YEAR_10000,
        allow_inf_nan=False,
        description="Earliest lease, in Unix seconds, and the place in the queue; default: now.",
    )

    @model_validator(mode="before")
    @classmethod
    def _default_id(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        names = {field.alias or name for name, field in cls.model_fields.items()}
        values = {key: value for key, value in raw.items() if value is not None or key not in names}
        url = values.get("url")
        if isinstance(url, str) and not {"id", "artifact_id"} & values.keys():
            values["id"] = _canonical(url)
        return values

    @field_validator("artifact_id", "url", "path")
    @classmethod
    def _is_storable(cls, text: str | None) -> str | None:
        """Reject what cannot be stored. Escaping it could make two ids equal."""
        if text is not None and storable(text) != text:
            raise ValueError("should not contain NUL characters or lone surrogates")
        return text

    @field_validator("artifact_id")
    @classmethod
    def _is_an_id(cls, text: str) -> str:
        if len(text.encode()) > MAX_ID_BYTES:
            raise ValueError(f"should have at most {MAX_ID_BYTES} bytes")
        return text

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is not None:
            _canonical(url)
        return url

    @field_validator("meta")
    @classmethod
    def _is_json(cls, meta: dict[str, Any]) -> dict[str, Any]:
        # Level by level, since recursion would fail on deep nesting.
        level: list[Any] = [meta]
        for _ in range(MAX_META_DEPTH):
            containers = (value for value in level if isinstance(value, dict | list))
            level = [x for item in containers for x in (item.values() if isinstance(item, dict) else item)]
        if level:
            raise ValueError(f"should be nested at most {MAX_META_DEPTH} levels deep")
        try:
            json.dumps(meta, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError("should be valid JSON, without NaN or infinity") from None
        return meta

    @model_validator(mode="after")
    def _has_one_location(self) -> "NewArtifact":
        if (self.url is None) == (self.path is None):
            raise ValueError("should have either url or path")
        return self

    @property
    def host(self) -> str:
        """Return the host for the limit per host; empty for a file."""
        host = "" if self.url is None else (urlsplit(self.url).hostname or "").rstrip(".")
        return host if host.isascii() else checked_url(self.url or "").raw_host.decode("ascii").rstrip(".")

    def as_row(self, now: float) -> dict[str, Any]:
        """Return the row of a new artifact."""
        return {
            "artifact_id": self.artifact_id,
            "url": self.url,
            "path": None if self.path is None else str(Path(self.path).absolute()),
            "resolver": self.resolver or ("file" if self.url is None else "http"),
            "host": self.host,
            "meta": json.dumps(self.meta),
            "state": "queued",
            "attempts": 0,
            "max_attempts": self.max_attempts,
            "not_before": now if self.not_before is None else self.not_before,
            "enqueued_at": now,
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an artifact could not be acquired; classified by the error's type."""

    category: Category
    code: str
    message: str
    retryable: bool

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Classify an error; unknown errors are not retried."""
        record = StageError.of(error, stage="documents", item_id="")
        return cls(record.category, record.code, record.message, record.retryable)

    def as_columns(self) -> dict[str, Any]:
        """Return the columns to store. JSON is ASCII here, so every database accepts any message."""
        values = {name: getattr(self, name) for name in Failure.__dataclass_fields__}
        return {"last_error": json.dumps(values), "error_category": self.category}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a lease ended: done, skipped or error."""

    state: FinalState
    failure: Failure | None = None
    content_hash: str | None = None
    size_bytes: int | None = None
    mime: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.state == "error") != (self.failure is not None):
            raise ValueError("should have a failure if, and only if, the state is error")

    def as_columns(self) -> dict[str, Any]:
        """Return the columns to store. Validators are kept if the server sent none this time."""
        values: dict[str, Any] = {
            "state": self.state,
            "duplicate_of": None,  # until duplicates are decided
            "detail": json.dumps(dict(self.detail)),
            "last_error": None,
            "error_category": None,
        }
        for name in ("content_hash", "mime", "etag", "last_modified"):
            if (text := getattr(self, name)) is not None:
                values[name] = storable(text)
        if self.size_bytes is not None:
            values["size_bytes"] = self.size_bytes
        return values | (self.failure.as_columns() if self.failure else {})


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact in the ledger."""

    seq: int
    artifact_id: str
    url: str | None
    path: str | None
    resolver: str
    host: str
    meta: dict[str, Any]
    batch: str | None
    state: State
    attempts: int
    max_attempts: int | None
    not_before: float
    leased_by: str | None
    leased_at: float | None
    lease_expires: float | None
    last_error: Failure | None
    duplicate_of: str | None
    detail: dict[str, Any]
    content_hash: str | None
    etag: str | None
    last_modified: str | None
    enqueued_at: float
    finished_at: float | None
    doc_seq: int | None = None
    size_bytes: int | None = None
    mime: str | None = None

    @property
    def origin(self) -> str:
        """The URL, or the path of the file."""
        return self.url or self.path or ""

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> "Artifact":
        """Return the artifact of a row."""
        values = {name: row[name] for name in cls.__dataclass_fields__}
        error = row["last_error"]
        values["meta"] = json.loads(row["meta"])
        values["detail"] = json.loads(row["detail"] or "{}")
        values["last_error"] = None if error is None else Failure(**json.loads(error))
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on an artifact until `expires_at`; later calls identify it by the token."""

    token: str
    expires_at: float
    artifact: Artifact


COLUMNS = [artifacts.c[name] for name in Artifact.__dataclass_fields__]


def storable(text: str) -> str:
    """Escape NUL characters and lone surrogates, so that every database accepts the text."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


@functools.lru_cache(maxsize=1)
def _canonical(url: str) -> str:
    """Return the URL in canonical form; cached, because a URL that is also the id is parsed twice."""
    try:
        return str(checked_url(url))
    except FetchError as error:
        raise ValueError(str(error)) from None
