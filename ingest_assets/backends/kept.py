"""A backend that outlives a run, so that the next one finds its workers warm."""

from concurrent.futures import Future
from typing import Any

from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.ports import Call, ExecutionBackend


class KeptBackend:
    """Closes only when items are still running, which is how a run ends that was stopped."""

    def __init__(self, backend: ExecutionBackend) -> None:
        self._backend = backend
        self._running: set[Future[Any]] = set()

    @property
    def workers(self) -> int:
        return self._backend.workers

    @property
    def abandoned(self) -> int:
        return self._backend.abandoned

    @property
    def broken(self) -> str | None:
        return self._backend.broken

    @property
    def is_inline(self) -> bool:
        return self._backend.is_inline

    def submit(self, call: Call, item: WorkItem, context: ItemContext, timeout_s: float) -> Future[Any]:
        """As the backend behind does."""
        future = self._backend.submit(call, item, context, timeout_s)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def close(self, grace_s: float) -> None:
        """Leave no future open."""
        if self._running:
            self._backend.close(grace_s)
