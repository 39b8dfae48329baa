"""How stages run their items: `[execution]` and `[stages.<name>]`."""

from typing import Any, Literal

from pydantic import Field

from ingest_assets.settings.fields import Strict

Policy = Literal["io", "cpu", "gpu"]
Schedule = Literal["fifo", "sjf"]
BackendName = Literal["local", "ray"]
RunOn = Literal["auto", "inline", "threads", "processes"]


class ExecutionOptions(Strict):
    """Where items run. `[execution]` is for every stage, `[stages.<name>.execution]` changes it for one."""

    backend: BackendName = Field("local", description="This machine, or a Ray cluster (extra `ray`).")
    run_on: RunOn = Field(
        "auto", description="On local: by policy (auto), one by one in the step itself, threads or processes."
    )
    max_workers: int = Field(0, ge=0, le=4096, description="Workers of a stage at most; 0 = no cap.")
    max_worker_mebibytes: int = Field(
        4096,
        ge=0,
        description="Memory of one worker process at most: one above it is killed, and only its item fails, "
        "with E_RESOURCE_MEMORY; 0 = no limit. Threads cannot be killed, so it is not for them.",
    )
    address: str = Field(
        "",
        description="Ray cluster to connect to: HOST:PORT, or auto for the one on this machine; "
        "empty = start one here.",
    )
    num_cpus: float | None = Field(
        None, ge=0, description="Cores a Ray worker claims; none = 1, and 0.25 under io."
    )
    num_gpus: float | None = Field(
        None, ge=0, description="GPUs a Ray worker claims; none = 1 under gpu where there are any, else 0."
    )
    dangerous_gpu_processes: bool = Field(
        False, description="Let gpu stages run on processes, each with a model and a GPU context of its own."
    )

    def changed_by(self, stage: "ExecutionOptions") -> "ExecutionOptions":
        """These options with what a stage sets for itself."""
        return self.model_copy(update={name: getattr(stage, name) for name in stage.model_fields_set})


class StageOptions(Strict):
    """Execution options, the same for every stage."""

    policy: Policy = Field(
        "io", description="io and gpu run on threads, cpu on processes that can be killed."
    )
    workers: int = Field(
        0, ge=0, le=256, description="Items at the same time; 0 = chosen from cores and memory."
    )
    memory_per_worker_mib: int = Field(512, ge=1, description="What the choice of workers reckons with.")
    per_item_timeout_s: float = Field(0, ge=0, description="Time limit of one attempt in seconds; 0 = none.")
    retries: int = Field(
        0, ge=0, le=20, description="Further attempts after an error that says it is retryable."
    )
    retry_backoff_s: float = Field(1.0, ge=0, description="Wait before the first retry; doubles with each.")
    error_budget: int | None = Field(
        None,
        ge=0,
        description="Failures allowed before the stage stops; 0 = stop on the first; none = unlimited.",
    )
    max_failed_share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Stop when more than this share of the finished items failed (after 20).",
    )
    cancel_on_first_failure: bool = Field(False, description="Stop at the first failed item.")
    max_queue: int = Field(64, ge=1, description="Items taken from the plan ahead of the workers.")
    resume: bool = Field(True, description="Skip items whose stored rows are current.")
    force: bool = Field(False, description="Run every item and put what it replaces into quarantine.")
    dry_run: bool = Field(False, description="Say what would run and touch nothing.")
    diagnostics_interval_s: float = Field(10.0, gt=0, description="Seconds between progress lines in a log.")
    schedule: Schedule = Field(
        "fifo",
        description="Order of work: fifo = as planned, sjf = one worker on the smallest items and the others "
        "on the largest; rows keep plan order.",
    )
    grace_s: float = Field(
        5.0, ge=0, description="What running items get to finish when a stage is cancelled."
    )
    execution: ExecutionOptions = ExecutionOptions()
    options: dict[str, Any] = Field(
        default_factory=dict, description="Options of a stage that was added; those that ship have sections."
    )
