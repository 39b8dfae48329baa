"""A Dagster deployment that turns a growing set of documents into doctags, chunks and embeddings."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingest_assets.app.convert import Converted, convert

# ONNX Runtime sends telemetry to its vendor unless this is set before it loads. Documents are private.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = ["Converted", "convert"]


def __getattr__(name: str) -> Any:
    """Import the Python interface on first use: every command and worker imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ingest_assets.app import convert as module

    return getattr(module, name)
