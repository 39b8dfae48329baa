"""The settings tree: defaults, then `ingest.toml`, then `INGEST_*` variables, then the command line.

Strict on purpose: an unknown key or a value out of range is refused with its path and what was expected.
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
    exclude: tuple[str, ...] = Field((), description="Glob patterns of relative paths to leave out.")


class IntakeSettings(Strict):
    """Where documents are catalogued, and what the watched folders are trusted with."""

    ledger: SecretStr = Field(
        SecretStr(""),
        description="postgresql://USER:PASSWORD@HOST/DATABASE; empty = a SQLite file in the home folder.",
    )

    accept_empty_folders: bool = Field(
        False,
        description="Believe a folder that had documents and is empty now; it may be an unmounted disk.",
    )


class StagesSettings(BaseModel):
    """How each stage runs its items; keys are the same for every stage.

    A stage that was added to the graph has its defaults there; names of no stage are refused with the home.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, StageOptions]

    documents: StageOptions = StageOptions(policy="io", retries=1, per_item_timeout_s=600)
    doctags: StageOptions = StageOptions(policy="cpu", memory_per_worker_mib=2048, per_item_timeout_s=900)
    admission: StageOptions = StageOptions(policy="cpu", memory_per_worker_mib=1024, per_item_timeout_s=300)
    chunks: StageOptions = StageOptions(
        policy="cpu", memory_per_worker_mib=1024, per_item_timeout_s=600, schedule="sjf", max_queue=512
    )
    # Small documents first: one book must not hold up the vectors of all others.
    dense: StageOptions = StageOptions(policy="gpu", retries=1, schedule="sjf", max_queue=512)
    # Only where embeddings.sparse.model names a model.
    sparse: StageOptions = StageOptions(policy="gpu", retries=1, schedule="sjf", max_queue=512)
    # A millisecond each: one thread counts them in plan order, some hundred chunks at a time.
    lexical: StageOptions = StageOptions(policy="io", workers=1)

    @model_validator(mode="after")
    def _is_for_every_run(self) -> "StagesSettings":
        for name in (*type(self).model_fields, *(self.model_extra or {})):
            options: StageOptions = getattr(self, name)
            if options.dry_run or options.force:
                raise ValueError("should not hold dry_run or force: they belong to one run, as flags")
        return self

    @model_validator(mode="before")
    @classmethod
    def _keep_defaults(cls, given: Any) -> Any:
        """`[stages.doctags] workers = 4` changes one option and keeps the stage's other defaults."""
        if not isinstance(given, dict):
            return given
        merged = dict(given)
        for name, value in given.items():
            if name in cls.model_fields and isinstance(value, dict):
                defaults = cls.model_fields[name].default.model_dump(exclude_unset=True)
                merged[name] = {**defaults, **value}
        return merged


class FeatureSettings(Strict):
    """Switches over the whole deployment."""

    parallel: bool = Field(True, description="Off: one worker everywhere.")
    require_parity: bool = Field(
        False, description="More than one worker only after `ingest validate` has proved equal bytes."
    )
    experimental: bool = Field(False, description="Allow what is not proved yet: Ray Client addresses.")


class PoolSettings(Strict):
    """How many steps of one kind may run at the same time over all runs of this deployment."""

    fetch: int = Field(4, ge=1, description="Steps that acquire documents.")
    doctags: int = Field(1, ge=1, description="Steps that convert; each uses every core by itself.")
    chunks: int = Field(1, ge=1, description="Steps that judge or chunk; each uses every core by itself.")
    gpu: int = Field(1, ge=1, description="Steps that hold a model.")
    lexical: int = Field(2, ge=1, description="Steps that count terms; each uses one core and no model.")


class ExecutorSettings(Strict):
    """Dagster's executor of each job. Items already run in parallel inside a step, and a step of its own
    process costs seconds, so `multiprocess` is for those who want steps apart from each other."""

    all: Executor = "in_process"
    documents: Executor = "in_process"
    doctags: Executor = "in_process"
    admission: Executor = "in_process"
    chunks: Executor = "in_process"
    embeddings: Executor = "in_process"


class AutomationSettings(Strict):
    """The sensor and the schedule."""

    scan_interval_seconds: int = Field(30, ge=5, description="Seconds between looks at the watched folders.")
    scan_budget_seconds: float = Field(
        40, gt=0, le=50, description="Hashing per look; the rest waits for the next."
    )
    settle_seconds: float = Field(2, ge=0, description="Files younger than this are still being written.")
    reconcile_cron: str = Field("0 2 * * *", description="When batches that are not complete are run again.")

    @field_validator("reconcile_cron")
    @classmethod
    def _is_cron(cls, value: str) -> str:
        if not re.fullmatch(r"@(hourly|daily|weekly|monthly)|[\d*/,\-]+( [\w*/,\-]+){4}", value):
            raise ValueError("should be a cron expression of five fields, as in '0 2 * * *'")
        return value


class Settings(BaseSettings):
    """Everything that can be configured."""

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
        """The environment wins over the file, which arrives as init values."""
        return env_settings, init_settings
