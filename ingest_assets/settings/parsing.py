"""`[parsing]`: how documents are read, and the limits."""

from typing import Literal

from pydantic import Field

from ingest_assets.core.endpoints import redacted_url
from ingest_assets.settings.fields import Address, Strict, Variable

ResponseFormat = Literal["doctags", "markdown"]
HtmlMode = Literal["strict", "balanced", "permissive"]
EngineName = Literal["embedded", "docling", "native", "vlm"]


class VlmOptions(Strict):
    """A vision model that reads pages, behind an OpenAI-compatible endpoint.

    The API key itself is never a setting.
    """

    url: Address = Field("", description="URL of chat completions, such as https://HOST/v1/chat/completions.")
    model: str = Field("", max_length=400, description="The model's name on the server.")
    api_key_env: Variable = Field(
        "",
        description="Name of the environment variable with the API key; empty = no key.",
    )
    prompt: str = Field(
        "Convert this page to docling.", min_length=1, description="The prompt for every page."
    )
    response_format: ResponseFormat = Field("doctags", description="The format of the model's answer.")
    image_scale: float = Field(2.0, gt=0, le=8, description="Scale of a page image; 1 = 72 dots per inch.")
    max_tokens: int = Field(8192, ge=1, description="Maximum tokens of the answer for one page.")
    timeout_seconds: float = Field(120, gt=0, le=3600, description="Time limit of one page.")
    concurrency: int = Field(4, ge=1, le=64, description="Concurrent pages per worker.")
    use_environment_proxies: bool = Field(False, description="Use HTTP_PROXY and HTTPS_PROXY.")

    @property
    def address(self) -> str:
        """The URL without its query, which can contain secrets."""
        return redacted_url(self.url)


class ParsingOptions(Strict):
    """How documents are read, and which are rejected."""

    pdf: Literal["auto"] | EngineName = Field(
        "auto",
        description="Engine for PDFs and images: embedded models, Docling's own (docling), its model-free "
        "pipeline (native), or a vision model (vlm); auto = docling if it has models, else embedded.",
    )
    artifacts_path: str = Field(
        "",
        description="Folder with Docling's models, relative to the home; empty = DOCLING_ARTIFACTS_PATH, "
        "else the hub's cache.",
    )
    vlm: VlmOptions = VlmOptions()
    ocr: bool = Field(True, description="Read pages without a text layer with RapidOCR.")
    ocr_timeout_seconds: float = Field(
        600, gt=0, description="Time limit for OCR of one document; above it, E_OCR_TIMEOUT."
    )
    html: HtmlMode = Field(
        "balanced",
        description="Which part of a web page is kept: permissive = all; balanced = from the first heading "
        "on; strict = that without menus, banners, sidebars and hidden text.",
    )
    max_mebibytes: int = Field(512, ge=1, description="Larger files are rejected with E_SECURITY_TOO_LARGE.")
    max_pages: int = Field(
        5000,
        ge=1,
        description="PDFs with more pages and images with more frames are rejected with "
        "E_SECURITY_TOO_MANY_PAGES.",
    )
    max_image_megapixels: int = Field(
        100,
        ge=1,
        description="Images, and PDF pages drawn at 144 dpi, with more megapixels are rejected with "
        "E_SECURITY_DECOMPRESSION_BOMB.",
    )
    max_image_side: int = Field(
        65_500, ge=1, description="Images with a longer side, in pixels, are rejected in the same way."
    )
    max_archive_members: int = Field(
        10_000,
        ge=1,
        description="Office files and e-books with more archive members are rejected in the same way.",
    )
    max_unpacked_mebibytes: int = Field(
        512, ge=1, description="Archives and PDFs that are larger when unpacked are rejected in the same way."
    )
    max_compression_ratio: int = Field(
        200,
        ge=10,
        description="Files with a higher ratio are rejected in the same way, if more than 32 MiB unpacked "
        "(1 MiB for XML entities).",
    )
