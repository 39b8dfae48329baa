"""What the queue holds: artifacts to acquire, leases on them, and how each ended."""

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
MAX_META_DEPTH = 100  # json recurses, and what cannot be written must be refused here
_YEAR_10000 = 253_402_300_800  # seconds from 1970; milliseconds, a frequent slip, are far beyond


class NewArtifact(BaseModel):
    """Something to acquire: one line of an artifact list, `{"id"?, "url" or "path", "resolver"?, "meta"?}`.

    What has a URL and no id is known by the URL in its canonical form. A key that is null is left out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    artifact_id: str = Field(alias="id", min_length=1, description="Stable and unique; becomes the doc_id.")
    url: str | None = Field(None, description="An http or https address.")
    path: str | None = Field(None, min_length=1, description="A file.")
    resolver: ResolverName = Field(
        "", validate_default=False, description="Who acquires it; none = http or file."
    )
    meta: dict[str, Any] = Field(default_factory=dict, description="Kept with the document as it is.")
    max_attempts: int | None = Field(None, ge=1, le=100, description="Instead of queue.max_job_attempts.")
    not_before: float | None = Field(
        None,
        lt=_YEAR_10000,
        allow_inf_nan=False,
        description="Not leased before this time, and its place in the line; none = now.",
    )

    @model_validator(mode="before")
    @classmethod
    def _is_known_by_its_url(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        names = {field.alias or name for name, field in cls.model_fields.items()}
        there = {key: value for key, value in given.items() if value is not None or key not in names}
        url = there.get("url")
        if isinstance(url, str) and not {"id", "artifact_id"} & there.keys():
            there["id"] = _canonical(url)
        return there

    @field_validator("artifact_id", "url", "path")
    @classmethod
    def _is_storable(cls, text: str | None) -> str | None:
        """Refused rather than escaped: two ids must not become one."""
        if text is not None and storable(text) != text:
            raise ValueError("should hold neither NUL characters nor lone surrogates")
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
        # Level by level: what is nested too deep to be written must not be found out by recursion.
        level: list[Any] = [meta]
        for _ in range(MAX_META_DEPTH):
            containers = (each for each in level if isinstance(each, dict | list))
            level = [x for each in containers for x in (each.values() if isinstance(each, dict) else each)]
        if level:
            raise ValueError(f"should be nested at most {MAX_META_DEPTH} deep")
        try:
            json.dumps(meta, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError("should hold what JSON can say; NaN and infinite numbers are not") from None
        return meta

    @model_validator(mode="after")
    def _is_somewhere(self) -> "NewArtifact":
        if (self.url is None) == (self.path is None):
            raise ValueError("should have either url or path")
        return self

    @property
    def host(self) -> str:
        """What the cap per host counts; nothing for a file."""
        host = "" if self.url is None else (urlsplit(self.url).hostname or "").rstrip(".")
        return host if host.isascii() else checked_url(self.url or "").raw_host.decode("ascii").rstrip(".")

    def as_row(self, now: float) -> dict[str, Any]:
        """The row of a new artifact."""
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
        """An error this product does not know is not retried."""
        record = StageError.of(error, stage="documents", item_id="")
        return cls(record.category, record.code, record.message, record.retryable)

    def as_columns(self) -> dict[str, Any]:
        """As stored. JSON is ASCII here, so no message can be one that a database refuses."""
        found = {name: getattr(self, name) for name in Failure.__dataclass_fields__}
        return {"last_error": json.dumps(found), "error_category": self.category}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a lease ended: acquired, not needed (and why), or given up."""

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
            raise ValueError("an error, and nothing else, should name its failure")

    def as_columns(self) -> dict[str, Any]:
        """As stored; what a server said last is kept when this time it said nothing."""
        values: dict[str, Any] = {
            "state": self.state,
            "duplicate_of": None,  # until it is decided whose bytes count
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
    """One artifact as the ledger knows it."""

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
        """Where it comes from: its URL, or the path of its file."""
        return self.url or self.path or ""

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> "Artifact":
        """An artifact from its row."""
        values = {name: row[name] for name in cls.__dataclass_fields__}
        error = row["last_error"]
        values["meta"] = json.loads(row["meta"])
        values["detail"] = json.loads(row["detail"] or "{}")
        values["last_error"] = None if error is None else Failure(**json.loads(error))
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on an artifact until `expires_at`; every later call names the token."""

    token: str
    expires_at: float
    artifact: Artifact


COLUMNS = [artifacts.c[name] for name in Artifact.__dataclass_fields__]


def storable(text: str) -> str:
    """Text that every database takes: NUL characters and lone surrogates become their escapes."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


@functools.lru_cache(maxsize=1)
def _canonical(url: str) -> str:
    """Remembered for the one artifact that is being made: its URL is looked at twice when it is the id."""
    try:
        return str(checked_url(url))
    except FetchError as error:
        raise ValueError(str(error)) from None
