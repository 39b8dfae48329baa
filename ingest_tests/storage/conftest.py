"""A home, and a small table of every awkward column kind."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingest_assets.core.layout import Layout

Child = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The layout of an empty home."""
    return Layout(tmp_path)


@pytest.fixture
def child() -> Iterator[Child]:
    """Start Python code in a real process that talks over pipes; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
