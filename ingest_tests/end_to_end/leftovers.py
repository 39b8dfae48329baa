"""What an interrupted run leaves behind: staged parts, rows of the manifest, and no process."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

from ingest_assets.runner import ManifestRow, read_manifest
from ingest_tests.conftest import Command


def wait_until(condition: Callable[[], Any], seconds: float = 120) -> None:
    """Poll until the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for did not happen"
        time.sleep(0.02)


def staged(command: Command) -> set[str]:
    """Return the names of the documents' parts that doctags has finished but not committed."""
    parts = (command.home / "data" / "doctags" / ".parts").rglob("[!.]*.parquet")
    return {part.name for part in parts}


def attempts(command: Command) -> list[ManifestRow]:
    """Return every attempt of doctags at a document, in order."""
    return list(read_manifest(command.home / "state" / "manifests" / "doctags.jsonl"))


def outputs(rows: Iterable[ManifestRow]) -> set[str]:
    """Return the names of the parts that some attempts wrote."""
    return {Path(path).name for row in rows for path in row.outputs}


def below(pid: int) -> list[psutil.Process]:
    """Return every process that a process started, directly or indirectly."""
    return psutil.Process(pid).children(recursive=True)


def are_gone(processes: Iterable[psutil.Process]) -> bool:
    """True if none of them is running any more."""
    return not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in processes)


def line_of(process: psutil.Process) -> str:
    """Return the command line of a process that may be ending."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
