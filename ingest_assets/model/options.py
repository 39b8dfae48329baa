"""How a stage runs its items."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from ingest_assets.model.vlm import VlmOptions

Policy = Literal["io", "cpu", "gpu"]
Schedule = Literal["fifo", "sjf"]
BackendName = Literal["local", "ray"]
RunOn = Literal["auto", "inline", "threads", "processes"]
HtmlMode = Literal["strict", "balanced", "permissive"]
EngineName = Literal["embedded", "docling", "native", "vlm"]
ResolverName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class ExecutionOptions(BaseModel):
    """Where items run. `[execution]` is for every stage, `[stages.<name>.execution]` changes it for one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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


class StageOptions(BaseModel):
    """Execution options, the same for every stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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


class ParsingOptions(BaseModel):
    """How documents are read, and which are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pdf: Literal["auto"] | EngineName = Field(
        "auto",
        description="Who reads PDFs and images: the embedded models, Docling's own, its model-free pipeline "
        "(native), or a vision model (vlm); auto = docling where its models are, else embedded.",
    )
    artifacts_path: str = Field(
        "",
        description="Folder with Docling's models, relative to the home; empty = DOCLING_ARTIFACTS_PATH, or "
        "else the hub's cache.",
    )
    vlm: VlmOptions = VlmOptions()
    ocr: bool = Field(True, description="Read pages without a text layer with RapidOCR.")
    ocr_timeout_seconds: float = Field(
        600, gt=0, description="Longer OCR of one document ends with E_OCR_TIMEOUT."
    )
    html: HtmlMode = Field(
        "balanced",
        description="What of a web page is kept: all (permissive), what comes with its first heading and "
        "after it (balanced), or that without menus, banners, margins and what is hidden (strict).",
    )
    max_mebibytes: int = Field(512, ge=1, description="Larger files are refused with E_SECURITY_TOO_LARGE.")
    max_pages: int = Field(
        5000,
        ge=1,
        description="PDFs with more pages and images with more frames are refused with "
        "E_SECURITY_TOO_MANY_PAGES.",
    )
    max_image_megapixels: int = Field(
        100,
        ge=1,
        description="Images with more million pixels, and PDF pages with more when drawn at 144 dpi, are "
        "refused with E_SECURITY_DECOMPRESSION_BOMB.",
    )
    max_image_side: int = Field(
        65_500, ge=1, description="Images with a longer side, in pixels, are refused in the same way."
    )
    max_archive_members: int = Field(
        10_000,
        ge=1,
        description="Office files and books that are archives of more members are refused in the same way.",
    )
    max_unpacked_mebibytes: int = Field(
        512, ge=1, description="Archives and PDFs that hold more when unpacked are refused in the same way."
    )
    max_compression_ratio: int = Field(
        200,
        ge=10,
        description="So are those that hold more than so many times their size, if that is above 32 MiB "
        "(1 MiB for entities of XML).",
    )


class BatchLimits(BaseModel):
    """How many documents share a home batch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_documents: int = Field(500, ge=1, description="Documents in one batch at most.")
    max_mebibytes: int = Field(
        512, ge=1, description="Bytes in one batch at most; a larger document is alone."
    )


class FetchOptions(BaseModel):
    """How documents are fetched from the web, and what is not fetched."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    contact: str = Field(
        "",
        max_length=200,
        pattern=r"^([!-~]([ -~]*[!-~])?)?$",
        description="Web page or mail address where a site owner reaches you; sent in the User-Agent.",
    )
    user_agent: str = Field(
        "",
        max_length=400,
        pattern=r"^([!-~]([ -~]*[!-~])?)?$",
        description="The whole User-Agent; empty = this product, its version and the contact.",
    )
    max_mebibytes: int = Field(512, ge=1, description="Larger documents are refused, however compressed.")
    max_redirects: int = Field(5, ge=0, le=20, description="Redirects followed for one document.")
    connect_timeout_s: float = Field(10, gt=0, description="Seconds to resolve a host and to connect to it.")
    idle_timeout_s: float = Field(30, gt=0, description="Seconds without a byte before a fetch is given up.")
    total_timeout_s: float = Field(300, gt=0, description="Seconds one fetch may take in all.")
    politeness_delay_s: float = Field(
        1, ge=0, description="Seconds between two documents of the same host, per process."
    )
    allow_private: bool = Field(
        False, description="Also fetch from private, loopback and link-local addresses."
    )
    breaker_failures: int = Field(
        5, ge=1, description="Failures of a host in a row before it is left alone for a while."
    )
    breaker_open_s: float = Field(60, gt=0, description="Seconds a host that keeps failing is left alone.")
    use_environment_proxies: bool = Field(
        False,
        description="Fetch through HTTP_PROXY and HTTPS_PROXY; the proxy then decides where a name leads.",
    )


class QuotaOptions(BaseModel):
    """How often one API may be asked, over all processes: a bucket of `rate` that refills in `per_seconds`.

    In the long run that is the rate; within one `per_seconds` a full bucket and what refills can be used.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: int = Field(ge=1, description="Requests allowed in that time, also all at once.")
    per_seconds: float = Field(gt=0, le=86_400, description="Seconds in which the bucket fills up again.")


class QueueOptions(BaseModel):
    """How artifacts are leased and tried again. Caps hold over all processes and machines of a ledger."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_workers: int = Field(8, ge=1, le=256, description="Artifacts one process acquires at the same time.")
    max_per_host: int = Field(4, ge=1, description="Leases of one host at the same time.")
    max_per_resolver: dict[ResolverName, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict, description="Leases of a resolver at the same time; one not named has no cap."
    )
    lease_ttl_seconds: float = Field(
        600, ge=30, description="A lease without a heartbeat for so long is given to another worker."
    )
    heartbeat_seconds: float = Field(30, ge=5, description="Seconds between the heartbeats of a lease.")
    max_job_attempts: int = Field(3, ge=1, le=100, description="Leases of an artifact before it is an error.")
    retry_backoff_seconds: float = Field(
        60, ge=0, le=86_400, description="Wait before the second attempt; doubles with each further one."
    )
    jitter_seconds: float = Field(15, ge=0, le=86_400, description="Random part of every wait at most.")
    refresh_days: float = Field(
        0, ge=0, description="Days after which an acquired artifact is looked at again; 0 = never."
    )
    quotas: dict[ResolverName, QuotaOptions] = Field(
        default_factory=dict, description="Request quotas by the name of an API; one not named has none."
    )

    @model_validator(mode="after")
    def _outlives_its_heartbeat(self) -> "QueueOptions":
        if self.lease_ttl_seconds <= self.heartbeat_seconds:
            raise ValueError(
                f"should have lease_ttl_seconds ({self.lease_ttl_seconds:g}) above heartbeat_seconds "
                f"({self.heartbeat_seconds:g}): a lease must outlive the wait for its heartbeat"
            )
        return self
