"""Ctrl-C and SIGTERM: the first stops a command gracefully, the second immediately.

Dagster replaces signal handlers while it runs, and native code can block the main thread from running any. So
a thread counts the signals: Python writes each signal's number into a pipe, which the thread reads.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from ingest_assets.core.items import SIGNAL_DEBOUNCE_S

INTERRUPTED = 130  # the exit code of Typer for KeyboardInterrupt, and of shells for SIGINT
EXIT_GRACE_S = 1.0  # after the second signal, the main thread has this long to exit by itself
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CLEAR_LINE, _SHOW_CURSOR = "\r\x1b[2K", "\x1b[?25h"


class Interrupts:
    """Counts the interrupts of this process and reacts to the first and the second."""

    def __init__(self) -> None:
        self.count = 0
        self._message: str | None = None
        self._kill: Callable[[], None] | None = None
        self._has_raised = self._is_loading = False
        self._counted_at_s = 0.0

    def listen(self) -> None:
        """Start counting. The first signal that Dagster does not handle raises `KeyboardInterrupt`."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, self._raise_once)
        threading.Thread(target=self._watch, args=(read,), name="ingest-interrupts", daemon=True).start()

    def stop_raising(self) -> None:
        """Ignore further signals: the command has finished."""
        self._has_raised = True

    @contextlib.contextmanager
    def announcing(self, message: str, kill: Callable[[], None] | None = None) -> Iterator[None]:
        """Print `message` at the first interrupt; call `kill` at the second, before this process exits."""
        self._message, self._kill = message, kill
        try:
            yield
        finally:
            self._message = self._kill = None

    @contextlib.contextmanager
    def exiting_at_once(self) -> Iterator[None]:
        """Exit at the first signal, for imports: some libraries crash when interrupted while loading."""
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
            # `timeout` sends its signal to the process and to its group: two signals, one interrupt.
            if now_s - self._counted_at_s >= SIGNAL_DEBOUNCE_S:
                self.count, self._counted_at_s = self.count + 1, now_s
                if self.count == 1 and self._message is not None:
                    _write(self._message)
        kill = self._kill
        if kill is not None:
            kill()
        time.sleep(EXIT_GRACE_S)
        _write("ingest: stopped at once; finished documents are kept.", _SHOW_CURSOR)
        os._exit(INTERRUPTED)


INTERRUPTS = Interrupts()


def _write(line: str, control: str = "") -> None:
    """Write past Python's buffers, which the main thread may have locked; a progress bar redraws itself."""
    text = f"{_CLEAR_LINE}{line}\n{control}" if sys.stderr.isatty() else f"{line}\n"
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
