"""Signals that interrupt a stage, deferred while it updates its records."""

import contextlib
import math
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ingest_assets.core.items import SIGNAL_DEBOUNCE_S


class Interrupts:
    """Handles SIGINT and SIGTERM during a stage, if the stage runs in the main thread.

    Signals are passed to the handler that was installed before, which raises an exception of its choice;
    inside `deferred` they wait until its end. After `stop_raising`, a further signal only makes the end
    urgent. Signals that were ignored or had the default action are not handled.
    """

    def __init__(self, now_s: Callable[[], float], wake: Callable[[], None]) -> None:
        self.is_ending = self.is_urgent = False
        self._now_s, self._wake = now_s, wake
        self._previous_handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._is_deferring = False
        self._waiting: tuple[int, FrameType | None] | None = None
        self._raised_at_s = -math.inf

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._previous_handlers[number] = handler
                    signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous_handlers.items():
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, handler)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer signals until the block ends, for updates that must be complete."""
        is_outer, self._is_deferring = not self._is_deferring, True
        try:
            yield
        finally:
            if is_outer:
                self._is_deferring = False
                if self._waiting is not None and not self.is_ending:
                    waiting, self._waiting = self._waiting, None
                    self._raise(*waiting)

    def stop_raising(self) -> None:
        """Note that the stage is ending: further signals are not raised, they make it urgent."""
        self.is_ending = True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_repeated = self._now_s() - self._raised_at_s < SIGNAL_DEBOUNCE_S
        if self._is_deferring and not self.is_ending:
            self._waiting = number, frame
        elif not is_repeated and self.is_ending:
            self.is_urgent = True
            self._wake()
        elif not is_repeated:
            self._raise(number, frame)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self._raised_at_s = self._now_s()
        self._previous_handlers[number](number, frame)
