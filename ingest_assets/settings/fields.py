"""What the sections of the settings have in common: their base and the kinds of values."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from ingest_assets.core.endpoints import checked_address


class Strict(BaseModel):
    """Base of every section: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

Name = Annotated[str, StringConstraints(pattern=NAME)]
Share = Annotated[float, Field(ge=0, le=1)]
Address = Annotated[str, AfterValidator(checked_address)]
# The name of an environment variable; keys themselves are never settings.
Variable = Annotated[str, StringConstraints(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")]
# Visible ASCII without blanks at its ends, as a value in a header of HTTP.
HeaderText = Annotated[str, StringConstraints(pattern=r"^([!-~]([ -~]*[!-~])?)?$")]
