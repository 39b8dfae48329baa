"""Ctrl-C and SIGTERM of a command: the first ends it gently, the second at once.

Dagster replaces signal handlers while it runs, and native code may keep the main thread from running any. So
the presses are counted on the side: Python writes each signal's number into a pipe, which a thread reads.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from ingest_assets.core.items import SAME_PRESS_S

INTERRUPTED = 130  # what Typer makes of a KeyboardInterrupt, and shells of SIGINT
TIDY_END_S = 1.0  # that long the second press lets the main thread end by itself
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CLEAR_LINE, _SHOW_CURSOR = "\r\x1b[2K", "\x1b[?25h"


class Presses:
    """How often this process was asked to end, and what the first asking is answered with."""

    def __init__(self) -> None:
        self.count = 0
        self._answer: str | None = None
        self._at_once: Callable[[], None] | None = None
        self._has_raised = self._is_loading = False
        self._counted_at_s = 0.0

    def listen(self) -> None:
        """From now on a signal that Dagster does not take raises `KeyboardInterrupt`, once."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, self._raise_once)
        threading.Thread(target=self._watch, args=(read,), name="ingest-presses", daemon=True).start()

    def stop_raising(self) -> None:
        """The command is over."""
        self._has_raised = True

    @contextlib.contextmanager
    def answered(self, line: str, at_once: Callable[[], None] | None = None) -> Iterator[None]:
        """What a person reads at the first press, and what the second does beside ending this process."""
        self._answer, self._at_once = line, at_once
        try:
            yield
        finally:
            self._answer = self._at_once = None

    @contextlib.contextmanager
    def ending_at_once(self) -> Iterator[None]:
        """Nothing is worth a tidy end yet: libraries are loaded, some of which crash when interrupted."""
        self._is_loading = True
        try:
            yield
        finally:
            self._is_loading = False

    def _raise_once(self, number: int, frame: FrameType | None) -> None:
        if self._is_loading:
            os._exit(INTERRUPTED)
        if not self._has_raised:
            self._has_raised = True
            raise KeyboardInterrupt

    def _watch(self, pipe: int) -> None:
        while self.count < 2:
            if os.read(pipe, 1)[0] not in _SIGNALS:
                continue
            now_s = time.monotonic()
            # `timeout` sends its signal to the process and to its group: one press, two signals.
            if now_s - self._counted_at_s >= SAME_PRESS_S:
                self.count, self._counted_at_s = self.count + 1, now_s
                if self.count == 1 and self._answer is not None:
                    _write(self._answer)
        at_once = self._at_once
        if at_once is not None:
            at_once()
        time.sleep(TIDY_END_S)
        _write("ingest: ended at once; finished documents are kept, the next run continues.", _SHOW_CURSOR)
        os._exit(INTERRUPTED)


PRESSES = Presses()


def _write(line: str, control: str = "") -> None:
    """Past Python's buffers, which the main thread may hold; a live bar draws itself again below."""
    text = f"{_CLEAR_LINE}{line}\n{control}" if sys.stderr.isatty() else f"{line}\n"
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
