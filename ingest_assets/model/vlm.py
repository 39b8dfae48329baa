"""A vision model that reads pages, behind an OpenAI-compatible address."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ingest_assets.model.endpoints import checked_address, shown_address

ResponseFormat = Literal["doctags", "markdown"]


class VlmOptions(BaseModel):
    """Where the model answers and what it is asked. The key itself is never a setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field("", description="Address of chat completions, as in https://HOST/v1/chat/completions.")
    model: str = Field("", max_length=400, description="What the server calls the model.")
    api_key_env: str = Field(
        "",
        pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$",
        description="Name of the environment variable that holds the key; empty = no key is sent.",
    )
    prompt: str = Field(
        "Convert this page to docling.", min_length=1, description="What is asked for every page."
    )
    response_format: ResponseFormat = Field("doctags", description="What the model answers with.")
    image_scale: float = Field(2.0, gt=0, le=8, description="Size of a page's picture; 1 = 72 dots per inch.")
    max_tokens: int = Field(8192, ge=1, description="Longest answer for one page, in tokens.")
    timeout_seconds: float = Field(120, gt=0, le=3600, description="Seconds one page may take.")
    concurrency: int = Field(4, ge=1, le=64, description="Pages asked for at the same time, per worker.")
    use_environment_proxies: bool = Field(False, description="Ask through HTTP_PROXY and HTTPS_PROXY.")

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        return checked_address(value)

    @property
    def address(self) -> str:
        """The URL as it may be shown: a query may hold what is nobody's business."""
        return shown_address(self.url)
