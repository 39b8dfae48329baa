"""`[batches]`, `[fetch]` and `[queue]`: how documents are fetched and grouped."""

from typing import Annotated

from pydantic import Field, model_validator

from ingest_assets.settings.fields import HeaderText, Name, Strict

ResolverName = Name  # the name of an API that resolves documents


class BatchLimits(Strict):
    """The size of a batch."""

    max_documents: int = Field(500, ge=1, description="Maximum documents per batch.")
    max_mebibytes: int = Field(
        512, ge=1, description="Maximum size of a batch; a larger document gets its own batch."
    )


class FetchOptions(Strict):
    """How documents are fetched from the web, and the limits."""

    contact: HeaderText = Field(
        "",
        max_length=200,
        description="Your web page or e-mail address for site owners; sent in the User-Agent.",
    )
    user_agent: HeaderText = Field(
        "",
        max_length=400,
        description="The complete User-Agent; empty = this product, its version and the contact.",
    )
    max_mebibytes: int = Field(512, ge=1, description="Larger documents are rejected (size uncompressed).")
    max_redirects: int = Field(5, ge=0, le=20, description="Maximum redirects per document.")
    connect_timeout_s: float = Field(10, gt=0, description="Seconds to resolve a host and to connect to it.")
    idle_timeout_s: float = Field(30, gt=0, description="Seconds without data before a fetch fails.")
    total_timeout_s: float = Field(300, gt=0, description="Maximum seconds of one fetch.")
    politeness_delay_s: float = Field(
        1, ge=0, description="Seconds between two documents of the same host, per process."
    )
    allow_private: bool = Field(
        False, description="Also fetch from private, loopback and link-local addresses."
    )
    breaker_failures: int = Field(
        5, ge=1, description="Consecutive failures of a host before a pause of `breaker_open_s`."
    )
    breaker_open_s: float = Field(60, gt=0, description="Seconds without requests to a failing host.")
    use_environment_proxies: bool = Field(
        False,
        description="Use HTTP_PROXY and HTTPS_PROXY; the proxy then resolves host names.",
    )


class QuotaOptions(Strict):
    """The quota of a resolver over all processes: a token bucket of `rate`, refilled in `per_seconds`.

    The long-term rate is that of the bucket; one interval can use a full bucket and what is refilled.
    """

    rate: int = Field(ge=1, description="Requests per interval; they can be sent all at once.")
    per_seconds: float = Field(gt=0, le=86_400, description="Seconds to refill the bucket.")


class QueueOptions(Strict):
    """How queued documents are leased and retried. Limits apply to all processes and machines of a ledger."""

    max_workers: int = Field(8, ge=1, le=256, description="Documents one process acquires at the same time.")
    max_per_host: int = Field(4, ge=1, description="Maximum leases of one host at the same time.")
    max_per_resolver: dict[ResolverName, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict, description="Maximum leases of a resolver at the same time; unset = no limit."
    )
    lease_ttl_seconds: float = Field(
        600, ge=30, description="Seconds without a heartbeat after which a lease expires."
    )
    heartbeat_seconds: float = Field(30, ge=5, description="Seconds between the heartbeats of a lease.")
    max_job_attempts: int = Field(3, ge=1, le=100, description="Attempts at a document before it fails.")
    retry_backoff_seconds: float = Field(
        60, ge=0, le=86_400, description="Wait before the second attempt; doubles each time."
    )
    jitter_seconds: float = Field(15, ge=0, le=86_400, description="Maximum random addition to each wait.")
    refresh_days: float = Field(
        0, ge=0, description="Days after which an acquired document is refreshed; 0 = never."
    )
    quotas: dict[ResolverName, QuotaOptions] = Field(
        default_factory=dict, description="Request quotas by resolver; unset = no quota."
    )

    @model_validator(mode="after")
    def _outlives_its_heartbeat(self) -> "QueueOptions":
        if self.lease_ttl_seconds <= self.heartbeat_seconds:
            raise ValueError(
                f"should have lease_ttl_seconds ({self.lease_ttl_seconds:g}) above heartbeat_seconds "
                f"({self.heartbeat_seconds:g}): otherwise a lease expires before its heartbeat"
            )
        return self
