"""The process a reader lives in: no network, no chatter."""

import logging
import os
import warnings

_NOISY = (
    *("docling", "docling_core", "docling_ibm_models", "RapidOCR", "pypdfium2", "PIL", "bs4"),
    *("httpx", "httpcore"),  # they would tell the address of a vision model with its query
)


def go_offline() -> None:
    """Model hubs are never asked. Must run before Docling is imported."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"


def silence_libraries() -> None:
    """What a document did wrong is in its row; the libraries' own lines would only be repeated for each."""
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for category in (DeprecationWarning, FutureWarning, UserWarning, RuntimeWarning):
        warnings.filterwarnings("ignore", category=category, module=r"docling.*|rapidocr.*|bs4.*|openpyxl.*")


def without_office_programs() -> None:
    """Docling draws some Office shapes with LibreOffice where it finds one: output would vary by host."""
    from docling.backend.docx.drawingml import utils

    utils.get_libreoffice_cmd = lambda raise_if_unavailable=False: None


def silence_table_model() -> None:
    """TableFormer writes lines to standard output, where a command's JSON goes. Must run before it loads."""
    from docling_ibm_models.tableformer import settings

    settings.get_custom_logger = _silent_logger


def _silent_logger(name: str, level: int, stream: object = None) -> logging.Logger:
    logger = logging.getLogger(name)
    logger.disabled = True
    return logger
