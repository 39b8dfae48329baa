"""Items one by one in the coordinator's own thread: for debugging, and what the others are compared with."""

from concurrent.futures import Future
from typing import Any

from ingest_assets.model.errors import SubmitFailed
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.ports import Call


class InlineBackend:
    """No thread, no process, so nothing can be stopped: no time limits, and a crash is a crash."""

    workers = 1
    is_inline = True
    abandoned = 0
    broken: str | None = None

    def __init__(self) -> None:
        self._closed = False

    def submit(self, call: Call, item: WorkItem, context: ItemContext, timeout_s: float) -> Future[Any]:
        """Make the call now; the future is ended when it returns."""
        if self._closed:
            raise SubmitFailed("the backend is closed")
        future: Future[Any] = Future()
        future.set_result(call(item, context))
        return future

    def close(self, grace_s: float) -> None:
        """Nothing runs between two calls."""
        self._closed = True
