"""An empty home, without Dagster and environment variables."""

from pathlib import Path

import pytest

from ingest_assets.app.home import Home, open_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    (tmp_path / "home").mkdir()
    return open_home(tmp_path / "home")
