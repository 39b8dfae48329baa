"""Progress of a stage: log lines, a live bar on a terminal, or nothing."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ingest_assets.core.items import StageOutcome

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


def progress_line(
    stage: str, total: int | None, done: int, succeeded: int, skipped: int, failed: int, elapsed_s: float
) -> str:
    """Return a line such as `doctags 120/500 | 110 done, 8 skipped, 2 failed | 3.4 items/s | ETA 1:52`."""
    rate = (succeeded + failed) / elapsed_s if elapsed_s > 0 else 0.0
    parts = [
        f"{stage} {done}" if total is None else f"{stage} {done}/{total}",
        f"{succeeded} done, {skipped} skipped, {failed} failed",
        f"{rate:.1f} items/s",
    ]
    if total is not None and rate > 0 and done < total:
        parts.append(f"ETA {as_clock((total - done) / rate)}")
    return " | ".join(parts)


def as_clock(seconds: float) -> str:
    """Return `1:52`, or `1:01:52` from an hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class NoProgress:
    """Shows no progress."""

    def start(self, stage: str, total: int | None) -> None:
        """Do nothing."""

    def update(self, done: int, succeeded: int, skipped: int, failed: int) -> None:
        """Do nothing."""

    def finish(self, outcome: StageOutcome) -> None:
        """Do nothing."""


class LogProgress:
    """Logs at most one line every `interval_s`, and one at the end."""

    def __init__(
        self,
        log: Callable[[str], None],
        interval_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._interval_s, self._clock = log, interval_s, clock
        self._stage = ""
        self._total: int | None = None
        self._started = self._last = 0.0

    def start(self, stage: str, total: int | None) -> None:
        """Store the stage, the total and the start time."""
        self._stage, self._total = stage, total
        self._started = self._last = self._clock()

    def update(self, done: int, succeeded: int, skipped: int, failed: int) -> None:
        """Log a line if the interval has passed."""
        now = self._clock()
        if now - self._last >= self._interval_s:
            self._last = now
            elapsed_s = now - self._started
            self._log(progress_line(self._stage, self._total, done, succeeded, skipped, failed, elapsed_s))

    def finish(self, outcome: StageOutcome) -> None:
        """Log the result, unless the stage had nothing to do."""
        if outcome.scheduled or outcome.skipped:
            self._log(finish_line(outcome))


class BarProgress:
    """A live bar on standard error, for the coordinator only; workers must not draw."""

    def __init__(self, console: "Console | None" = None) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def start(self, stage: str, total: int | None) -> None:
        """Show the bar."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=self._console or Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(stage, total=total, counts="")
        self._bar.start()

    def update(self, done: int, succeeded: int, skipped: int, failed: int) -> None:
        """Update the bar; Rich redraws it at its own interval."""
        if self._bar is not None and self._task is not None:
            counts = f"{succeeded} done, {skipped} skipped, {failed} failed"
            self._bar.update(self._task, completed=done, counts=counts)

    def finish(self, outcome: StageOutcome) -> None:
        """Remove the bar and print the result, unless the stage had nothing to do."""
        if self._bar is not None:
            self._bar.stop()
            if outcome.scheduled or outcome.skipped:
                self._bar.console.print(finish_line(outcome), highlight=False, markup=False)
            self._bar = None


def finish_line(outcome: StageOutcome) -> str:
    """Return `doctags: 110 done, 8 skipped, 2 failed in 0:35 | 3.4 items/s`, and the reason if stopped."""
    counts = f"{outcome.succeeded} done, {outcome.skipped} skipped, {outcome.failed} failed"
    if outcome.cancelled:
        counts += f", {outcome.cancelled} cancelled"
    line = f"{outcome.stage}: {counts} in {as_clock(outcome.wall_s)} | {outcome.items_per_s:.1f} items/s"
    return f"{line} | {outcome.cancelled_reason}" if outcome.cancelled_reason else line
