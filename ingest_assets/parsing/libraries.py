"""The libraries that read documents: their versions, their process-wide setup, and OCR's time limit."""

import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from ingest_assets.core.identity import installed_versions
from ingest_assets.parsing.errors import OcrTimeout

VERSIONED = (
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
    """Return the version of every library that can change the doctags; `absent` if not installed."""
    return installed_versions(*VERSIONED)


_NOISY = (
    *("docling", "docling_core", "docling_ibm_models", "RapidOCR", "pypdfium2", "PIL", "bs4"),
    *("httpx", "httpcore"),  # they would log the URL of a vision model with its query
)


def prepare_process() -> None:
    """Disable downloads, log output and optional host programs. Call it before importing Docling."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    # a document's problems are stored in its row; library logs would repeat them for each document
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for category in (DeprecationWarning, FutureWarning, UserWarning, RuntimeWarning):
        warnings.filterwarnings("ignore", category=category, module=r"docling.*|rapidocr.*|bs4.*|openpyxl.*")
    from docling.backend.docx.drawingml import utils

    # Docling renders some Office shapes with LibreOffice if installed: output would depend on the host
    utils.get_libreoffice_cmd = lambda raise_if_unavailable=False: None


def silence_table_model() -> None:
    """Stop TableFormer from logging to stdout, which is for a command's JSON. Call it before loading it."""
    from docling_ibm_models.tableformer import settings

    def silent_logger(name: str, level: int, stream: object = None) -> logging.Logger:
        logger = logging.getLogger(name)
        logger.disabled = True
        return logger

    settings.get_custom_logger = silent_logger


# OCR's time limit for one document. OCR can be stopped only between pages.


class OcrClock:
    """Measures OCR's time for one document at a time."""

    def __init__(self) -> None:
        self.restart(inf)

    def restart(self, limit_seconds: float, spent_seconds: float = 0.0) -> None:
        """Start a new document; `spent_seconds` is the time that other workers have used for its pages."""
        self._limit_seconds = limit_seconds
        self.spent_seconds = spent_seconds

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure one page; raises `OcrTimeout` when previous pages have used up the time."""
        self.check()
        started = time.monotonic()
        try:
            yield
        finally:
            self.spent_seconds += time.monotonic() - started

    def check(self) -> None:
        """Raise `OcrTimeout` when the time is used up."""
        if self.spent_seconds > self._limit_seconds:
            raise OcrTimeout(
                f"OCR of the document took too long (limit {self._limit_seconds:g} s). "
                "Split it or raise parsing.ocr_timeout_seconds."
            )
