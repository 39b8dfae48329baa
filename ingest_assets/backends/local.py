"""The backends of one machine: threads for waiting and for models, processes for native code."""

from collections.abc import Sequence

from ingest_assets.backends.processes import ProcessBackend
from ingest_assets.backends.threads import ThreadBackend
from ingest_assets.model.options import Policy
from ingest_assets.model.ports import ExecutionBackend

__all__ = ["ProcessBackend", "ThreadBackend", "local_backend"]


def local_backend(policy: Policy, workers: int, preload: Sequence[str] = ()) -> ExecutionBackend:
    """`cpu` runs on processes, which can be killed; `io` and `gpu` on threads, which cannot."""
    if policy == "cpu":
        return ProcessBackend(workers, preload)
    return ThreadBackend(workers)
