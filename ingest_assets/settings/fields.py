"""Base class and value types shared by the settings sections."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from ingest_assets.core.endpoints import validated_url


class Strict(BaseModel):
    """Base of every section: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

Name = Annotated[str, StringConstraints(pattern=NAME)]
Share = Annotated[float, Field(ge=0, le=1)]
Address = Annotated[str, AfterValidator(validated_url)]
# The name of an environment variable; API keys themselves are never settings.
Variable = Annotated[str, StringConstraints(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")]
# Visible ASCII without leading or trailing spaces, valid as the value of an HTTP header.
HeaderText = Annotated[str, StringConstraints(pattern=r"^([!-~]([ -~]*[!-~])?)?$")]
