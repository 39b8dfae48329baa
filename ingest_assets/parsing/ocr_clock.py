"""How long OCR may take for one document; it cannot be stopped within a page, only between two."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from ingest_assets.parsing.errors import OcrTimeout


class OcrClock:
    """Of one reader, which reads one document at a time."""

    def __init__(self) -> None:
        self.restart(inf)

    def restart(self, limit_seconds: float, spent_seconds: float = 0.0) -> None:
        """A new document; some of its time may have been spent elsewhere."""
        self._limit_seconds = limit_seconds
        self.spent_seconds = spent_seconds

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count a page; refuse it when the pages before have used up the time."""
        self.check()
        started = time.monotonic()
        try:
            yield
        finally:
            self.spent_seconds += time.monotonic() - started

    def check(self) -> None:
        """Raise when the time is over, however many pages were read."""
        if self.spent_seconds > self._limit_seconds:
            raise OcrTimeout(
                f"Text recognition took longer than the {self._limit_seconds:g} s allowed for a document; "
                "split it or raise parsing.ocr_timeout_seconds."
            )
