"""How a stage runs: its options for this run, the backend, the number of workers, and why."""

import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingest_assets.app.home import Home
from ingest_assets.backends import Kind, kind_of, workers_for
from ingest_assets.backends.ray import import_ray, is_client
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import code_version, installed_versions
from ingest_assets.settings.execution import StageOptions
from ingest_assets.storage.atomic import replacing

# Options with which a stage continues, no matter how many items fail.
NO_BUDGET = {"error_budget": None, "max_failed_share": None, "cancel_on_first_failure": False}

# The parity record: proof that more workers give the same bytes, for one version of code and settings.
#
# A home keeps only the last record: a record for other settings would not apply to it.


class ParityConditions(BaseModel):
    """Everything except the documents that decides the bytes of tables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code_version: str = Field(description="Version of this package, and a hash of its sources.")
    configuration_hash: str = Field(description="Hash of settings, stages and libraries that decide rows.")
    versions: dict[str, str] = Field(description="Python and the libraries whose versions decide rows.")


class ParityRecord(BaseModel):
    """The result of a successful `ingest validate`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    conditions: ParityConditions
    workers: dict[str, list[int]] = Field(description="Numbers of workers compared, by backend.")
    gpu_on_threads: bool = Field(False, description="True when GPU stages were compared on threads only.")
    tables: dict[str, str] = Field(description="sha256 of each table, by asset and batch.")
    input: str = Field(description="The folder whose documents were used.")
    documents: int = Field(description="How many documents there were.")
    made_at: str = Field(description="Time of the validation, in UTC.")


def current_conditions(home: Home) -> ParityConditions:
    """Return the current conditions of a home."""
    libraries = {"python": platform.python_version(), **installed_versions("pyarrow")}
    for stage in home.stages.values():
        libraries |= stage.libraries()
    return ParityConditions(
        code_version=code_version(), configuration_hash=home.configuration_hash, versions=libraries
    )


def write_record(home: Home, record: ParityRecord) -> None:
    """Replace the home's parity record."""
    with replacing(home.layout.parity_record) as scratch:
        scratch.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_record(home: Home) -> ParityRecord | None:
    """Return the home's parity record, or None if it is missing or from an incompatible version."""
    try:
        return ParityRecord.model_validate_json(home.layout.parity_record.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def require_parity(home: Home, stage: str, kind: Kind, workers: str) -> None:
    """Raise `ConfigError` when `features.require_parity` is on and no record covers several workers.

    `workers` is text for the message: on Ray the number is unknown until the cluster is reached.
    """
    if not home.settings.features.require_parity:
        return
    gap = _gap(home, stage, kind)
    if gap is not None:
        raise ConfigError(
            f"stages.{stage}: {workers} on {kind} are not allowed, because features.require_parity is on and "
            f"{gap}. Run `ingest validate --home {shlex.quote(str(home.layout.home))}`, or use one worker."
        )


def _gap(home: Home, stage: str, kind: Kind) -> str | None:
    """Return why the home's parity record does not cover this backend, or None if it does."""
    record = read_record(home)
    if record is None:
        return "there is no parity record"
    recorded, current = record.conditions, current_conditions(home)
    if recorded.code_version != current.code_version:
        return "the parity record is from another version of the code"
    for name in sorted({*recorded.versions, *current.versions}):
        before, now = recorded.versions.get(name, "absent"), current.versions.get(name, "absent")
        if before != now:
            return f"the parity record is from {name} {before}, and {now} is installed"
    if recorded.configuration_hash != current.configuration_hash:
        return "the parity record is from other settings"
    is_gpu = home.options(stage).policy == "gpu"
    has_compared = max(record.workers.get(kind, [0])) > 1
    if not has_compared or (is_gpu and kind == "processes" and record.gpu_on_threads):
        return f"the parity record does not cover {kind} with more than one worker"
    return None


# What can be changed for one run, from the launchpad or the command line.


class RunOptions(BaseModel):
    """Options of one run; empty ones come from the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: str | None = Field(None, description="Kind of work: io, cpu or gpu.")
    workers: int | None = Field(None, description="Items processed at a time; 0 = by cores and memory.")
    retries: int | None = Field(None, description="Retries after a temporary error.")
    per_item_timeout_s: float | None = Field(
        None, description="Time limit for one document, in seconds; 0 = no limit."
    )
    error_budget: int | None = Field(None, description="Failed documents allowed before the stage stops.")
    max_queue: int | None = Field(None, description="Items queued ahead of the workers.")
    resume: bool | None = Field(None, description="Skip items whose stored rows are current.")
    force: bool | None = Field(None, description="Run every item again; replaced tables go to quarantine.")

    retry: list[str] | None = Field(
        None,
        description="Ids of failed documents to retry, even after a permanent failure; other failed documents"
        " are left as they are. Empty: retry all documents that failed for a temporary reason.",
    )

    backend: str | None = Field(None, description="local or ray.")
    run_on: str | None = Field(None, description="Local: auto (by policy), inline, threads or processes.")

    def over(self, options: StageOptions) -> StageOptions:
        """Return the settings' options with this run's changes; errors of invalid values name their key."""
        changes: dict[str, Any] = self.model_dump(exclude_none=True, exclude={"retry"})
        where: dict[str, Any] = {name: changes.pop(name) for name in ("backend", "run_on") if name in changes}
        if where.get("backend") == "ray" and where.get("run_on", "auto") != "auto":
            raise ConfigError("run_on: applies to the local backend only; remove it for ray.")
        execution = {**options.execution.model_dump(), **where}
        return StageOptions.model_validate({**options.model_dump(), **changes, "execution": execution})


@dataclass(frozen=True, slots=True)
class StageExecution:
    """How a stage will run, decided before its first item starts."""

    options: StageOptions
    kind: Kind
    workers: int
    reason: str


def resolve_execution(home: Home, stage: str, config: RunOptions) -> StageExecution:
    """Combine settings, run options and feature flags. Connects to Ray if that is the backend."""
    options = _options(home, stage, config)
    workers, reason = workers_for(options)
    if not home.settings.features.parallel and workers > 1:
        workers, reason = 1, "1: features.parallel is off"
    kind = kind_of(options)
    if workers > 1:
        require_parity(home, stage, kind, f"{workers} workers")
    return StageExecution(options, kind, workers, reason)


def check_run_options(home: Home, stages: Sequence[str], config: RunOptions) -> None:
    """Raise `ConfigError` for options that a stage would reject, before anything starts."""
    for stage in stages:
        kind = kind_of(_options(home, stage, config))
        if kind == "ray":
            import_ray()
        workers = expected_workers(home, stage, config)
        if workers != 1:
            require_parity(home, stage, kind, f"{workers} workers" if workers else "several workers")


def expected_workers(home: Home, stage: str, config: RunOptions) -> int | None:
    """Return a stage's number of workers, or None if the Ray cluster decides it. Connects to nothing."""
    options = _options(home, stage, config)
    if not home.settings.features.parallel:
        return 1
    if kind_of(options) != "ray":
        return workers_for(options)[0]
    return 1 if 1 in (options.workers, options.execution.max_workers) else options.workers or None


def _options(home: Home, stage: str, config: RunOptions) -> StageOptions:
    options = config.over(home.options(stage))
    address = options.execution.address
    is_used = options.execution.backend == "ray" and is_client(address)
    if is_used and not home.settings.features.experimental:
        raise ConfigError(
            f"execution.address: {address} uses Ray Client, which is experimental. Use the head node's "
            "HOST:PORT, or set features.experimental = true (--enable-experimental)."
        )
    return options
