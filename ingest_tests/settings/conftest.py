"""Settings are read from a home of their own and from no variable of the machine the tests run on."""

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
