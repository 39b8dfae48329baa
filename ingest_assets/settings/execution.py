"""`[execution]` and `[stages.<name>]`: how stages run their items."""

from typing import Any, Literal

from pydantic import Field

from ingest_assets.settings.fields import Strict

Policy = Literal["io", "cpu", "gpu"]
Schedule = Literal["fifo", "sjf"]
BackendName = Literal["local", "ray"]
RunOn = Literal["auto", "inline", "threads", "processes"]


class ExecutionOptions(Strict):
    """Where items run. `[execution]` is for all stages, `[stages.<name>.execution]` overrides it for one."""

    backend: BackendName = Field("local", description="This machine, or a Ray cluster (extra `ray`).")
    run_on: RunOn = Field(
        "auto", description="With local: by policy (auto), one by one (inline), on threads or processes."
    )
    max_workers: int = Field(0, ge=0, le=4096, description="Maximum workers of a stage; 0 = no limit.")
    max_worker_mebibytes: int = Field(
        4096,
        ge=0,
        description="Memory limit of a worker process. One above it is killed, and only its item fails, with "
        "E_RESOURCE_MEMORY; 0 = no limit. Has no effect on threads.",
    )
    address: str = Field(
        "",
        description="Ray cluster: HOST:PORT, or auto for the one on this machine; empty = start one here.",
    )
    num_cpus: float | None = Field(
        None, ge=0, description="Cores of a Ray worker; unset = 1, or 0.25 with policy io."
    )
    num_gpus: float | None = Field(
        None, ge=0, description="GPUs of a Ray worker; unset = 1 with policy gpu if there are any, else 0."
    )
    dangerous_gpu_processes: bool = Field(
        False, description="Allow gpu stages on processes, each with its own model and GPU context."
    )

    def with_overrides(self, stage: "ExecutionOptions") -> "ExecutionOptions":
        """Return these options with the keys that the stage sets."""
        return self.model_copy(update={name: getattr(stage, name) for name in stage.model_fields_set})


class StageOptions(Strict):
    """Options of every stage."""

    policy: Policy = Field(
        "io", description="io and gpu run on threads, cpu on processes that can be killed."
    )
    workers: int = Field(
        0, ge=0, le=256, description="Items at the same time; 0 = chosen from cores and memory."
    )
    memory_per_worker_mib: int = Field(512, ge=1, description="Memory estimate; limits automatic workers.")
    per_item_timeout_s: float = Field(0, ge=0, description="Time limit of one attempt in seconds; 0 = none.")
    retries: int = Field(0, ge=0, le=20, description="Retries of an item after a retryable error.")
    retry_backoff_s: float = Field(1.0, ge=0, description="Wait before the first retry; doubles each time.")
    error_budget: int | None = Field(
        None,
        ge=0,
        description="Failures allowed before the stage stops; 0 = stop at the first; unset = unlimited.",
    )
    max_failed_share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Stop if a greater share of the finished items failed (checked once 20 have finished).",
    )
    cancel_on_first_failure: bool = Field(False, description="Stop at the first failed item.")
    max_queue: int = Field(64, ge=1, description="Items read from the plan ahead of the workers.")
    resume: bool = Field(True, description="Skip items whose stored rows are current.")
    force: bool = Field(False, description="Run every item and move replaced output to quarantine.")
    dry_run: bool = Field(False, description="Report what would run; change nothing.")
    diagnostics_interval_s: float = Field(10.0, gt=0, description="Seconds between progress lines in a log.")
    schedule: Schedule = Field(
        "fifo",
        description="Order of work: fifo = plan order; sjf = one worker takes the smallest items, the others "
        "the largest. Rows keep plan order.",
    )
    grace_s: float = Field(
        5.0, ge=0, description="Seconds that running items have to finish when a stage is cancelled."
    )
    execution: ExecutionOptions = ExecutionOptions()
    options: dict[str, Any] = Field(
        default_factory=dict, description="Options of an added stage; built-in stages have sections."
    )
