"""An empty home for settings, without the environment variables of the machine."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, with no `INGEST_*` variable set."""
    for name in list(os.environ):
        if name.upper().startswith("INGEST_"):
            monkeypatch.delenv(name)
    return tmp_path
