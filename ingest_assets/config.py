"""The settings tree: defaults, then `ingest.toml`, then `INGEST_*` variables, then the command line.

Strict on purpose: an unknown key or a value out of range is refused with its path and what was expected.
"""

import functools
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from ingest_assets.config_faults import explain
from ingest_assets.model.admission import AdmissionOptions
from ingest_assets.model.chunking import ChunkOptions
from ingest_assets.model.embedding import EmbeddingOptions
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.options import (
    BatchLimits,
    ExecutionOptions,
    FetchOptions,
    ParsingOptions,
    QueueOptions,
    StageOptions,
)
from ingest_assets.storage.layout import Layout

SOURCE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Executor = Literal["in_process", "multiprocess"]
SourceName = Annotated[str, StringConstraints(pattern=SOURCE_NAME)]

_NOT_SETTINGS = {"INGEST_HOME"}


class Strict(BaseModel):
    """Base of every section: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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


class StagesSettings(Strict):
    """How each stage runs its items; keys are the same for every stage."""

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
        for name in type(self).model_fields:
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

    sources: dict[SourceName, SourceSettings] = Field(
        default_factory=dict, description="Watched folders by name."
    )
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


class _CompleteSettings(Settings):
    """Settings that the environment has had its say in already."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *others: PydanticBaseSettingsSource,
        **named: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is given."""
        return (init_settings,)


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`INGEST_HOME`, or the nearest folder upwards that holds a home's files, or the current folder."""
    given = environ.get("INGEST_HOME")
    if given:
        return Path(given).expanduser().resolve()
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if _is_home(Layout(folder))), here)


def _is_home(layout: Layout) -> bool:
    """A folder with settings, a ledger, or this project's own files."""
    is_project = layout.instance_file.is_file() and (layout.home / "ingest_assets").is_dir()
    return layout.settings_file.is_file() or layout.ledger.is_file() or is_project


def read_settings(home: Path) -> Settings:
    """The settings of a home folder as they are now; raises `ConfigError` with one line per fault."""
    file = Layout(home).settings_file
    ours = frozenset(
        (name, value) for name, value in os.environ.items() if name.upper().startswith("INGEST_")
    )
    return _settings(file, _read_text(file), ours)


@functools.lru_cache(maxsize=8)
def _settings(file: Path, text: str, _environment: frozenset[tuple[str, str]]) -> Settings:
    """Every step asks for them: what was checked is kept for as long as file and variables are the same."""
    values = _parse_toml(file, text)
    _refuse_unknown_variables()
    try:
        return Settings(**values)
    except ValidationError as error:
        raise ConfigError("\n".join(explain(fault, Settings, file) for fault in error.errors())) from None
    except SettingsError as error:
        name = re.search(r'field "(\w+)"', str(error))
        variable = f"INGEST_{name[1].upper()}" if name else "INGEST_*"
        got = os.environ.get(variable, "")
        raise ConfigError(
            f"{variable}: should be a JSON object, or name one key of it; got {got!r}."
        ) from None


def settings_to_json(settings: Settings) -> str:
    """For `settings_from_json`. Holds only what was set: what a stage leaves open must stay open.

    Not the ledger's URL: it may hold a password, and a home with settings of its own has its own ledger.
    """
    return settings.model_dump_json(exclude_unset=True, exclude={"intake": {"ledger"}})


def settings_from_json(text: str) -> Settings:
    """Settings made by `settings_to_json`, whatever the files and variables say now."""
    return _CompleteSettings(**json.loads(text))


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML ({error}); correct the file.") from None
    except OSError as error:
        raise ConfigError(
            f"{file}: cannot be read ({error.strerror}); check the file's permissions."
        ) from None


def _parse_toml(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML ({error}); correct the file.") from None


def _refuse_unknown_variables() -> None:
    known = {f"INGEST_{name.upper()}" for name in Settings.model_fields} | _NOT_SETTINGS
    for variable in sorted(os.environ):
        if variable.startswith("INGEST_") and variable.split("__")[0].upper() not in known:
            raise ConfigError(
                f"{variable}: no such setting; sections are {', '.join(sorted(Settings.model_fields))} "
                "(for example INGEST_CHUNKS__MAX_TOKENS)."
            )
