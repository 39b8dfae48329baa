"""The proof that more workers give the same bytes: what was compared, and whether it holds for a home now.

A home keeps one record, the last: it has one configuration, and a proof for another is of no use to it.
"""

import platform
import shlex

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingest_assets.backends import Kind
from ingest_assets.defs.home import Home
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.identity import code_version, installed_versions
from ingest_assets.storage.atomic import replacing


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

    def covers(self, kind: str) -> bool:
        """True when this kind of backend was compared with more than one worker."""
        return max(self.workers.get(kind, [0])) > 1


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


def drop_record(home: Home) -> None:
    """Forget a proof that turned out wrong."""
    home.layout.parity_record.unlink(missing_ok=True)


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
    if not record.covers(kind) or (is_gpu and kind == "processes" and record.gpu_on_threads):
        return f"the parity record does not cover {kind} with more than one worker"
    return None
