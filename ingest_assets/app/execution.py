"""How a stage runs: its options for this run, where, on how many workers, and why."""

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

# What lets a stage go on, however many of its items fail.
NO_BUDGET = {"error_budget": None, "max_failed_share": None, "cancel_on_first_failure": False}

# The proof that more workers give the same bytes: what was compared, and whether it holds for a home now.
#
# A home keeps one record, the last: it has one configuration, and a proof for another is of no use to it.


class Circumstances(BaseModel):
    """Everything but documents that decides a byte of any table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code_version: str = Field(description="Version of this package, and a hash of its sources.")
    configuration_hash: str = Field(description="What the settings, stages and libraries decide.")
    versions: dict[str, str] = Field(description="Python and the libraries whose versions decide rows.")


class ParityRecord(BaseModel):
    """What one `ingest validate` has proved."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    circumstances: Circumstances
    workers: dict[str, list[int]] = Field(description="Numbers of workers compared, by kind of backend.")
    gpu_on_threads: bool = Field(False, description="Stages on a GPU were compared on threads only.")
    tables: dict[str, str] = Field(description="sha256 of each table, by asset and batch.")
    input: str = Field(description="The folder whose documents were used.")
    documents: int = Field(description="How many documents there were.")
    made_at: str = Field(description="When, in UTC.")


def circumstances_of(home: Home) -> Circumstances:
    """As they are now."""
    libraries = {"python": platform.python_version(), **installed_versions("pyarrow")}
    for stage in home.stages.values():
        libraries |= stage.libraries()
    return Circumstances(
        code_version=code_version(), configuration_hash=home.configuration_hash, versions=libraries
    )


def write_record(home: Home, record: ParityRecord) -> None:
    """Keep a record in place of the one before."""
    with replacing(home.layout.parity_record) as scratch:
        scratch.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_record(home: Home) -> ParityRecord | None:
    """The home's record; None when there is none that this version understands."""
    try:
        return ParityRecord.model_validate_json(home.layout.parity_record.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def require_parity(home: Home, stage: str, kind: Kind, workers: str) -> None:
    """Refuse a stage on more than one worker that nobody has compared with one, when the settings ask for it.

    `workers` says how many in words: on Ray the number is not known before the cluster is.
    """
    if not home.settings.features.require_parity:
        return
    gap = _gap(home, stage, kind)
    if gap is not None:
        raise ConfigError(
            f"stages.{stage}: {workers} on {kind} are refused, because features.require_parity is on and "
            f"{gap}; make one with `ingest validate --home {shlex.quote(str(home.layout.home))}`, "
            "or use one worker."
        )


def _gap(home: Home, stage: str, kind: Kind) -> str | None:
    """What the home's record lacks, in words; None when it proves this kind of backend."""
    record = read_record(home)
    if record is None:
        return "there is no parity record"
    then, now = record.circumstances, circumstances_of(home)
    if then.code_version != now.code_version:
        return "the parity record was made by another version of the code"
    for name in sorted({*then.versions, *now.versions}):
        before, here = then.versions.get(name, "absent"), now.versions.get(name, "absent")
        if before != here:
            return f"the parity record was made with {name} {before}, and here is {here}"
    if then.configuration_hash != now.configuration_hash:
        return "the parity record was made with other settings"
    is_gpu = home.options(stage).policy == "gpu"
    has_compared = max(record.workers.get(kind, [0])) > 1
    if not has_compared or (is_gpu and kind == "processes" and record.gpu_on_threads):
        return f"the parity record does not cover {kind} with more than one worker"
    return None


# What can be changed for one run, from the launchpad or the command line.


class RunOptions(BaseModel):
    """Options of one run; what is left empty comes from the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: str | None = Field(None, description="io, cpu or gpu.")
    workers: int | None = Field(None, description="Items at the same time; 0 = chosen from cores and memory.")
    retries: int | None = Field(None, description="Further attempts after a retryable error.")
    per_item_timeout_s: float | None = Field(
        None, description="Time limit of one attempt in seconds; 0 = none."
    )
    error_budget: int | None = Field(None, description="Failures allowed before the stage stops.")
    max_queue: int | None = Field(None, description="Items taken from the plan ahead of the workers.")
    resume: bool | None = Field(None, description="Skip items whose stored rows are current.")
    force: bool | None = Field(None, description="Run every item; what is replaced goes into quarantine.")

    retry: list[str] | None = Field(
        None,
        description="Ids of failed documents to try again, whatever their failure; other failed documents "
        "are left as they are. Empty: as in every run, all but those whose own bytes are at fault.",
    )

    backend: str | None = Field(None, description="local or ray.")
    run_on: str | None = Field(None, description="On local: auto (by policy), inline, threads or processes.")

    def over(self, options: StageOptions) -> StageOptions:
        """The settings' options with this run's changes; refused values are named by their key."""
        given: dict[str, Any] = self.model_dump(exclude_none=True, exclude={"retry"})
        where: dict[str, Any] = {name: given.pop(name) for name in ("backend", "run_on") if name in given}
        if where.get("backend") == "ray" and where.get("run_on", "auto") != "auto":
            raise ConfigError("run_on: says where items run on the local backend; leave it out with ray.")
        execution = {**options.execution.model_dump(), **where}
        return StageOptions.model_validate({**options.model_dump(), **given, "execution": execution})


@dataclass(frozen=True, slots=True)
class StageExecution:
    """Decided before the first item starts."""

    options: StageOptions
    kind: Kind
    workers: int
    reason: str


def execution_of(home: Home, stage: str, config: RunOptions) -> StageExecution:
    """Settings, run config and feature flags, put together; connects to Ray when that is asked for."""
    options = _options(home, stage, config)
    workers, reason = workers_for(options)
    if not home.settings.features.parallel and workers > 1:
        workers, reason = 1, "1: features.parallel is off"
    kind = kind_of(options)
    if workers > 1:
        require_parity(home, stage, kind, f"{workers} workers")
    return StageExecution(options, kind, workers, reason)


def refuse_early(home: Home, stages: Sequence[str], config: RunOptions) -> None:
    """Raise what a stage's execution would be refused for, before anything is started."""
    for stage in stages:
        kind = kind_of(_options(home, stage, config))
        if kind == "ray":
            import_ray()
        workers = workers_in_sight(home, stage, config)
        if workers != 1:
            require_parity(home, stage, kind, f"{workers} workers" if workers else "several workers")


def workers_in_sight(home: Home, stage: str, config: RunOptions) -> int | None:
    """How many workers a stage will get; None where only the cluster can tell. Opens nothing."""
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
            f"execution.address: {address} goes through Ray Client, which is experimental here; give the "
            "head node's own HOST:PORT, or set features.experimental = true (--enable-experimental)."
        )
    return options
