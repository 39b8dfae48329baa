"""The settings tree: defaults, then `ingest.toml`, then `INGEST_*` variables, then the command line.

Unknown keys and values out of range are rejected with their path and the expected value.
"""

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ingest_assets.settings.admission import AdmissionOptions
from ingest_assets.settings.chunks import ChunkOptions
from ingest_assets.settings.embeddings import EmbeddingOptions
from ingest_assets.settings.execution import ExecutionOptions, StageOptions
from ingest_assets.settings.fields import Name, Strict
from ingest_assets.settings.intake import BatchLimits, FetchOptions, QueueOptions
from ingest_assets.settings.parsing import ParsingOptions

Executor = Literal["in_process", "multiprocess"]


class SourceSettings(Strict):
    """One watched folder."""

    path: Path = Field(description="The folder; relative paths start at the home folder.")
    exclude: tuple[str, ...] = Field((), description="Glob patterns of relative paths to skip.")


class IntakeSettings(Strict):
    """The ledger's location, and what an empty folder means."""

    ledger: SecretStr = Field(
        SecretStr(""),
        description="postgresql://USER:PASSWORD@HOST/DATABASE; empty = a SQLite file in the home folder.",
    )

    accept_empty_folders: bool = Field(
        False,
        description="Treat the documents of an empty watched folder as deleted; by default they are kept, "
        "because a disk may not be mounted.",
    )


class StagesSettings(BaseModel):
    """How each stage runs its items; all stages have the same keys.

    Stages that are added to the graph have their defaults there. `home.validate()` rejects unknown stages.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, StageOptions]

    documents: StageOptions = StageOptions(policy="io", retries=1, per_item_timeout_s=600)
    doctags: StageOptions = StageOptions(policy="cpu", memory_per_worker_mib=2048, per_item_timeout_s=900)
    admission: StageOptions = StageOptions(policy="cpu", memory_per_worker_mib=1024, per_item_timeout_s=300)
    chunks: StageOptions = StageOptions(
        policy="cpu", memory_per_worker_mib=1024, per_item_timeout_s=600, schedule="sjf", max_queue=512
    )
    # Small documents first: one book must not delay the vectors of all others.
    dense: StageOptions = StageOptions(policy="gpu", retries=1, schedule="sjf", max_queue=512)
    # Runs only if embeddings.sparse.model is set.
    sparse: StageOptions = StageOptions(policy="gpu", retries=1, schedule="sjf", max_queue=512)
    # One thread is enough: a document takes a millisecond.
    lexical: StageOptions = StageOptions(policy="io", workers=1)

    @model_validator(mode="after")
    def _has_no_run_flags(self) -> "StagesSettings":
        for name in (*type(self).model_fields, *(self.model_extra or {})):
            options: StageOptions = getattr(self, name)
            if options.dry_run or options.force:
                raise ValueError("should not contain dry_run or force; use --dry-run or --force for one run")
        return self

    @model_validator(mode="before")
    @classmethod
    def _keep_defaults(cls, tables: Any) -> Any:
        """Merge `[stages.<name>]` with the stage's defaults, so that a key changes one option only."""
        if not isinstance(tables, dict):
            return tables
        merged = dict(tables)
        for name, value in tables.items():
            if name in cls.model_fields and isinstance(value, dict):
                defaults = cls.model_fields[name].default.model_dump(exclude_unset=True)
                merged[name] = {**defaults, **value}
        return merged


class FeatureSettings(Strict):
    """Switches for the whole deployment."""

    parallel: bool = Field(True, description="If off, every stage has one worker.")
    require_parity: bool = Field(
        False, description="Use several workers only after `ingest validate` has proved equal results."
    )
    experimental: bool = Field(False, description="Allow experimental features: Ray Client addresses.")


class PoolSettings(Strict):
    """How many steps of one kind can run at the same time, over all runs of the deployment."""

    fetch: int = Field(4, ge=1, description="Steps that acquire documents.")
    doctags: int = Field(1, ge=1, description="Steps that parse; each uses all cores.")
    chunks: int = Field(1, ge=1, description="Steps for admission and chunks; each uses all cores.")
    gpu: int = Field(1, ge=1, description="Steps with a model.")
    lexical: int = Field(2, ge=1, description="Steps that count terms; each uses one core and no model.")


class ExecutorSettings(Strict):
    """Dagster's executor of each job. Items already run in parallel within a step. `multiprocess` runs each
    step in its own process, which takes seconds to start."""

    all: Executor = "in_process"
    documents: Executor = "in_process"
    doctags: Executor = "in_process"
    admission: Executor = "in_process"
    chunks: Executor = "in_process"
    embeddings: Executor = "in_process"


class AutomationSettings(Strict):
    """The sensors and the schedule."""

    scan_interval_seconds: int = Field(30, ge=5, description="Seconds between scans of the watched folders.")
    scan_budget_seconds: float = Field(
        40, gt=0, le=50, description="Maximum seconds per scan for hashing files; the next scan continues."
    )
    settle_seconds: float = Field(2, ge=0, description="Skip files changed less than this many seconds ago.")
    reconcile_cron: str = Field("0 2 * * *", description="When incomplete batches are run again, in UTC.")

    @field_validator("reconcile_cron")
    @classmethod
    def _is_cron(cls, value: str) -> str:
        if not re.fullmatch(r"@(hourly|daily|weekly|monthly)|[\d*/,\-]+( [\w*/,\-]+){4}", value):
            raise ValueError("should be a cron expression of five fields, such as '0 2 * * *'")
        return value


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="INGEST_", env_nested_delimiter="__"
    )

    sources: dict[Name, SourceSettings] = Field(default_factory=dict, description="Watched folders by name.")
    intake: IntakeSettings = IntakeSettings()
    queue: QueueOptions = QueueOptions()
    fetch: FetchOptions = FetchOptions()
    batches: BatchLimits = BatchLimits()
    parsing: ParsingOptions = ParsingOptions()
    admission: AdmissionOptions = AdmissionOptions()
    chunks: ChunkOptions = ChunkOptions()
    embeddings: EmbeddingOptions = EmbeddingOptions()
    execution: ExecutionOptions = ExecutionOptions()
    stages: StagesSettings = StagesSettings()
    features: FeatureSettings = FeatureSettings()
    pools: PoolSettings = PoolSettings()
    executors: ExecutorSettings = ExecutorSettings()
    automation: AutomationSettings = AutomationSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources: environment variables override the file, which is passed as init values."""
        return env_settings, init_settings
