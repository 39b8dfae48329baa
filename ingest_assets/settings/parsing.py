"""`[parsing]`: how documents are read, and which are refused."""

from typing import Literal

from pydantic import Field

from ingest_assets.core.endpoints import shown_address
from ingest_assets.settings.fields import Address, Strict, Variable

ResponseFormat = Literal["doctags", "markdown"]
HtmlMode = Literal["strict", "balanced", "permissive"]
EngineName = Literal["embedded", "docling", "native", "vlm"]


class VlmOptions(Strict):
    """A vision model that reads pages, behind an OpenAI-compatible address: where it is, what it is asked.

    The key itself is never a setting.
    """

    url: Address = Field(
        "", description="Address of chat completions, as in https://HOST/v1/chat/completions."
    )
    model: str = Field("", max_length=400, description="What the server calls the model.")
    api_key_env: Variable = Field(
        "",
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

    @property
    def address(self) -> str:
        """The URL as it may be shown: a query may hold what is nobody's business."""
        return shown_address(self.url)


class ParsingOptions(Strict):
    """How documents are read, and which are refused."""

    pdf: Literal["auto"] | EngineName = Field(
        "auto",
        description="Who reads PDFs and images: the embedded models, Docling's own, its model-free pipeline "
        "(native), or a vision model (vlm); auto = docling where its models are, else embedded.",
    )
    artifacts_path: str = Field(
        "",
        description="Folder with Docling's models, relative to the home; empty = DOCLING_ARTIFACTS_PATH, or "
        "else the hub's cache.",
    )
    vlm: VlmOptions = VlmOptions()
    ocr: bool = Field(True, description="Read pages without a text layer with RapidOCR.")
    ocr_timeout_seconds: float = Field(
        600, gt=0, description="Longer OCR of one document ends with E_OCR_TIMEOUT."
    )
    html: HtmlMode = Field(
        "balanced",
        description="What of a web page is kept: all (permissive), what comes with its first heading and "
        "after it (balanced), or that without menus, banners, margins and what is hidden (strict).",
    )
    max_mebibytes: int = Field(512, ge=1, description="Larger files are refused with E_SECURITY_TOO_LARGE.")
    max_pages: int = Field(
        5000,
        ge=1,
        description="PDFs with more pages and images with more frames are refused with "
        "E_SECURITY_TOO_MANY_PAGES.",
    )
    max_image_megapixels: int = Field(
        100,
        ge=1,
        description="Images with more million pixels, and PDF pages with more when drawn at 144 dpi, are "
        "refused with E_SECURITY_DECOMPRESSION_BOMB.",
    )
    max_image_side: int = Field(
        65_500, ge=1, description="Images with a longer side, in pixels, are refused in the same way."
    )
    max_archive_members: int = Field(
        10_000,
        ge=1,
        description="Office files and books that are archives of more members are refused in the same way.",
    )
    max_unpacked_mebibytes: int = Field(
        512, ge=1, description="Archives and PDFs that hold more when unpacked are refused in the same way."
    )
    max_compression_ratio: int = Field(
        200,
        ge=10,
        description="So are those that hold more than so many times their size, if that is above 32 MiB "
        "(1 MiB for entities of XML).",
    )
