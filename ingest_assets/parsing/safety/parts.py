"""HTML inside other documents (books, e-mails, Markdown): Docling finds it, and reads it like a web page."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ingest_assets.parsing.safety.nesting import FLATTENED, flattened, is_too_deep
from ingest_assets.parsing.safety.texts import decode_text

_HOLDERS = ("md", "epub", "email", "mhtml")
_local = threading.local()


def watch_html_parts() -> None:
    """Let Docling's HTML reader build its trees here."""
    from docling.backend import html_backend

    html_backend.BeautifulSoup = _soup  # type: ignore[assignment,misc]


@contextmanager
def flattening(kind: str) -> Iterator[list[str]]:
    """While a document of this format is read, its HTML parts are kept flat; yields what there is to say."""
    notes: list[str] = []
    _local.notes = notes if kind in _HOLDERS else None
    try:
        yield notes
    finally:
        _local.notes = None


def _soup(markup: Any, features: str) -> Any:
    from bs4 import BeautifulSoup

    notes = getattr(_local, "notes", None)
    if notes is not None:
        text = decode_text(markup).text if isinstance(markup, bytes) else markup
        if is_too_deep(text):
            notes.append(FLATTENED)
            markup = flattened(text)
    return BeautifulSoup(markup, features)
