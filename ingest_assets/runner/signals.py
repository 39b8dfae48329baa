"""Signals that interrupt a stage: raised where it may be torn apart, kept back where it must not be."""

import contextlib
import math
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ingest_assets.core.items import SAME_PRESS_S


class Interrupts:
    """Takes SIGINT and SIGTERM for the length of a stage, when the stage runs in the main thread.

    They go on to the host's own handler, which raises whatever the host raises; inside `held` they wait for
    its end. After `stop_raising` none is raised any more: a further one makes the end urgent. Signals that
    the host ignores, or leaves to the system, stay as they are.
    """

    def __init__(self, now_s: Callable[[], float], wake: Callable[[], None]) -> None:
        self.is_ending = self.is_urgent = False
        self._now_s, self._wake = now_s, wake
        self._host: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._is_held = False
        self._waiting: tuple[int, FrameType | None] | None = None
        self._raised_at_s = -math.inf

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._host[number] = handler
                    signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._host.items():
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, handler)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Bookkeeping that is done wholly or not at all."""
        is_outer, self._is_held = not self._is_held, True
        try:
            yield
        finally:
            if is_outer:
                self._is_held = False
                if self._waiting is not None and not self.is_ending:
                    waiting, self._waiting = self._waiting, None
                    self._raise(*waiting)

    def stop_raising(self) -> None:
        """The stage is ending; from now on signals can only hurry it."""
        self.is_ending = True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_same_press = self._now_s() - self._raised_at_s < SAME_PRESS_S
        if self._is_held and not self.is_ending:
            self._waiting = number, frame
        elif not is_same_press and self.is_ending:
            self.is_urgent = True
            self._wake()
        elif not is_same_press:
            self._raise(number, frame)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self._raised_at_s = self._now_s()
        self._host[number](number, frame)
