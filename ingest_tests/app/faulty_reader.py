"""Preloaded into workers: makes the parser hang or crash on files with such names."""

import os
import signal
import time
from typing import Any

from ingest_assets.parsing.reader import DocumentReader

_read = DocumentReader.read


def _faulty_read(reader: DocumentReader, path: Any, *arguments: Any) -> Any:
    if path.name.startswith("hang"):
        time.sleep(600)
    if path.name.startswith("crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    return _read(reader, path, *arguments)


DocumentReader.read = _faulty_read  # type: ignore[method-assign]
