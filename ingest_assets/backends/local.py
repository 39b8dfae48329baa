"""The backends of one machine: threads for waiting and for models, processes for native code."""

from collections.abc import Sequence
from typing import Literal

from ingest_assets.backends.inline import InlineBackend
from ingest_assets.backends.processes import ProcessBackend
from ingest_assets.backends.threads import ThreadBackend
from ingest_assets.model.ports import ExecutionBackend

LocalKind = Literal["inline", "threads", "processes"]

__all__ = ["InlineBackend", "LocalKind", "ProcessBackend", "ThreadBackend", "local_backend"]


def local_backend(
    kind: LocalKind, workers: int, preload: Sequence[str] = (), max_mebibytes: int = 0
) -> ExecutionBackend:
    """Processes can be killed, also for their memory; threads cannot; inline has no one to kill."""
    if kind == "inline":
        return InlineBackend()
    if kind == "processes":
        return ProcessBackend(workers, preload, max_mebibytes=max_mebibytes)
    return ThreadBackend(workers)
