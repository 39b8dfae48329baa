"""The libraries that read documents: their versions, no network, no chatter, and OCR within its time."""

import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from ingest_assets.core.identity import installed_versions
from ingest_assets.parsing.errors import OcrTimeout

DECIDING = (
    "docling",
    "docling-core",
    "docling-ibm-models",
    "docling-parse",
    "rapid-layout",
    "rapidocr",
    "onnxruntime",
    "pypdfium2",
    "numpy",
    "pillow",
    "beautifulsoup4",
    "charset-normalizer",
    "lxml",
    "marko",
    "python-docx",
    "python-pptx",
    "openpyxl",
    "opencv-python-headless",
    "pylatexenc",
    "odfdo",
    "mail-parser",
    "python-oxmsg",
    "defusedxml",
)


def library_versions() -> dict[str, str]:
    """Name and installed version of every library that can change the doctags; `absent` if not installed."""
    return installed_versions(*DECIDING)


_NOISY = (
    *("docling", "docling_core", "docling_ibm_models", "RapidOCR", "pypdfium2", "PIL", "bs4"),
    *("httpx", "httpcore"),  # they would tell the address of a vision model with its query
)


def prepare_process() -> None:
    """No network, no chatter, no program that only some hosts have. Must run before Docling is imported."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    # what a document did wrong is in its row; the libraries' own lines would only be repeated for each
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for category in (DeprecationWarning, FutureWarning, UserWarning, RuntimeWarning):
        warnings.filterwarnings("ignore", category=category, module=r"docling.*|rapidocr.*|bs4.*|openpyxl.*")
    from docling.backend.docx.drawingml import utils

    # Docling draws some Office shapes with LibreOffice where it finds one: output would vary by host
    utils.get_libreoffice_cmd = lambda raise_if_unavailable=False: None


def silence_table_model() -> None:
    """TableFormer writes lines to standard output, where a command's JSON goes. Must run before it loads."""
    from docling_ibm_models.tableformer import settings

    def silent_logger(name: str, level: int, stream: object = None) -> logging.Logger:
        logger = logging.getLogger(name)
        logger.disabled = True
        return logger

    settings.get_custom_logger = silent_logger


# How long OCR may take for one document; it cannot be stopped within a page, only between two.


class OcrClock:
    """Of one reader, which reads one document at a time."""

    def __init__(self) -> None:
        self.restart(inf)

    def restart(self, limit_seconds: float, spent_seconds: float = 0.0) -> None:
        """A new document; some of its time may have been spent elsewhere."""
        self._limit_seconds = limit_seconds
        self.spent_seconds = spent_seconds

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count a page; refuse it when the pages before have used up the time."""
        self.check()
        started = time.monotonic()
        try:
            yield
        finally:
            self.spent_seconds += time.monotonic() - started

    def check(self) -> None:
        """Raise when the time is over, however many pages were read."""
        if self.spent_seconds > self._limit_seconds:
            raise OcrTimeout(
                f"Text recognition took longer than the {self._limit_seconds:g} s allowed for a document; "
                "split it or raise parsing.ocr_timeout_seconds."
            )
