"""What a person may change for one run, from the launchpad or the command line."""

import dagster as dg
from pydantic import Field

from ingest_assets.model.errors import ConfigError
from ingest_assets.model.options import StageOptions

_EXECUTION = ("backend", "run_on")


class StageRunConfig(dg.Config):
    """Options of one run; what is left empty comes from the settings."""

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
        given = {name: value for name, value in self.given().items() if name != "retry"}
        where = {name: given.pop(name) for name in _EXECUTION if name in given}
        if where.get("backend") == "ray" and where.get("run_on", "auto") != "auto":
            raise ConfigError("run_on: says where items run on the local backend; leave it out with ray.")
        execution = {**options.execution.model_dump(), **where}
        return StageOptions.model_validate({**options.model_dump(), **given, "execution": execution})

    def given(self) -> dict[str, object]:
        """Only what was set."""
        return {name: value for name, value in self.model_dump().items() if value is not None}
