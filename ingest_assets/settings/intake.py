"""`[batches]`, `[fetch]` and `[queue]`: how documents get in."""

from typing import Annotated

from pydantic import Field, model_validator

from ingest_assets.settings.fields import HeaderText, Name, Strict

ResolverName = Name  # of an API that is asked for documents


class BatchLimits(Strict):
    """How many documents share a home batch."""

    max_documents: int = Field(500, ge=1, description="Documents in one batch at most.")
    max_mebibytes: int = Field(
        512, ge=1, description="Bytes in one batch at most; a larger document is alone."
    )


class FetchOptions(Strict):
    """How documents are fetched from the web, and what is not fetched."""

    contact: HeaderText = Field(
        "",
        max_length=200,
        description="Web page or mail address where a site owner reaches you; sent in the User-Agent.",
    )
    user_agent: HeaderText = Field(
        "",
        max_length=400,
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


class QuotaOptions(Strict):
    """How often one API may be asked, over all processes: a bucket of `rate` that refills in `per_seconds`.

    In the long run that is the rate; within one `per_seconds` a full bucket and what refills can be used.
    """

    rate: int = Field(ge=1, description="Requests allowed in that time, also all at once.")
    per_seconds: float = Field(gt=0, le=86_400, description="Seconds in which the bucket fills up again.")


class QueueOptions(Strict):
    """How artifacts are leased and tried again. Caps hold over all processes and machines of a ledger."""

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
