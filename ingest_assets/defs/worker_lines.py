"""What far workers say, brought into the log of the step they work for."""

import queue
from collections.abc import Callable

from ingest_assets.model.errors import StageError
from ingest_assets.model.items import Result, WorkItem
from ingest_assets.model.outcomes import StageOutcome
from ingest_assets.runner import QuietHooks


class WorkerLines(QuietHooks):
    """Any thread may `say`; the coordinator's thread, to which Dagster's log belongs, writes."""

    def __init__(self, stage: str, log: Callable[[str], None]) -> None:
        self._stage, self._log = stage, log
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def say(self, line: str) -> None:
        """Keep a line until the coordinator has time."""
        self._lines.put(line)

    def before_item(self, item: WorkItem) -> None:
        """Write what has come."""
        self._write()

    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None:
        """Write what has come."""
        self._write()

    def after_stage(self, outcome: StageOutcome) -> None:
        """Write what is left."""
        self._write()

    def _write(self) -> None:
        while not self._lines.empty():
            self._log(f"{self._stage}: {self._lines.get()}")
