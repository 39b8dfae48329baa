"""Documents of every format, and what an interrupted run leaves behind."""

import shutil
from pathlib import Path

import pytest

from ingest_assets.samples import samples_folder

SAMPLES = [
    "association-rules.docx",
    "capping-and-moisture-trial.pdf",
    "first-inspection-course.pptx",
    "hive-records-2024.xlsx",
    "honey-labelling-rules.html",
    "pollen-calendar.html",
    "smoker-and-sting-safety.md",
    "winter-feeding-guide.md",
]


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with samples of every format, including a slow one."""
    folder = tmp_path_factory.mktemp("documents")
    for name in SAMPLES:
        shutil.copy(samples_folder() / name, folder / name)
    return folder
