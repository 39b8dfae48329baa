"""A pool of threads, for network waits and for models that combine the texts of several items.

A thread cannot be killed. An item that exceeds its time limit is *abandoned*: its future ends with
`ItemTimeout`, its late result is discarded, and a new thread replaces the blocked one, which runs until its
call returns or the process ends. Threads are daemons and do not delay that end. `abandoned` counts them.
"""

import math
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ingest_assets.backends.jobs import JobBackend
from ingest_assets.backends.worker_process import cancelled, run_work, timed_out
from ingest_assets.core.errors import SubmitFailed
from ingest_assets.core.ports import Work


@dataclass(eq=False, slots=True)
class _Job:
    """Submitted work. `is_abandoned` if its future has ended before the work."""

    work: Work
    timeout_s: float
    future: Future[Any] = field(default_factory=Future)
    deadline: float | None = None
    is_abandoned: bool = False


class ThreadBackend(JobBackend):
    """`workers` daemon threads, started when work arrives, and a watcher thread if there are time limits."""

    is_inline = False
    broken: str | None = None  # threads can always be started

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.workers = max(1, workers)
        self.abandoned = 0  # threads still running an abandoned item
        self._idle = 0
        self._threads = 0
        self._closed = False
        self._watching = False
        self._watch_until = math.inf
        self._waiting: deque[_Job] = deque()
        self._running: set[_Job] = set()
        self._lock = threading.Lock()
        self._has_work = threading.Condition(self._lock)
        self._changed = threading.Condition(self._lock)
        self._watch = threading.Condition(self._lock)

    def _start(self, work: Work, timeout_s: float) -> Future[Any]:
        job = _Job(work, timeout_s)
        with self._lock:
            if self._closed:
                raise SubmitFailed("the backend is closed")
            self._waiting.append(job)
            self._ensure_thread()
            self._has_work.notify()
        return job.future

    def close(self, grace_s: float = 0.0) -> None:
        """Let running jobs finish for `grace_s`, then abandon them. Every job has a result afterwards."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = list(self._waiting), deque()
        for job in waiting:
            job.future.cancel()
        try:
            with self._lock:
                self._changed.wait_for(lambda: not self._running, timeout=grace_s)
        finally:
            with self._lock:
                running, self._running = list(self._running), set()
                for job in running:
                    self._abandon(job)
                self._has_work.notify_all()
                self._watch.notify_all()
            for job in running:
                job.future.set_exception(cancelled())

    def _ensure_thread(self) -> None:
        if len(self._waiting) > self._idle and self._threads < self.workers:
            self._threads += 1
            threading.Thread(target=self._work, name="ingest-item", daemon=True).start()

    def _work(self) -> None:
        while (job := self._next_job()) is not None:
            value, error = run_work(job.work)
            if not self._leave(job):
                return
            if error is not None:
                job.future.set_exception(error)
            else:
                job.future.set_result(value)

    def _next_job(self) -> _Job | None:
        with self._lock:
            while True:
                self._idle += 1
                self._has_work.wait_for(lambda: self._waiting or self._closed)
                self._idle -= 1
                if not self._waiting:
                    self._threads -= 1
                    return None
                job = self._waiting.popleft()
                if job.future.set_running_or_notify_cancel():
                    self._enter(job)
                    return job

    def _enter(self, job: _Job) -> None:
        self._running.add(job)
        if job.timeout_s > 0:
            job.deadline = time.monotonic() + job.timeout_s
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch_deadlines, name="ingest-watch", daemon=True).start()
            if job.deadline < self._watch_until:
                self._watch.notify()

    def _leave(self, job: _Job) -> bool:
        """Return False if the job was abandoned; its thread has been replaced and must end."""
        with self._lock:
            if job.is_abandoned:
                self.abandoned -= 1
                return False
            self._running.discard(job)
            self._changed.notify_all()
            return True

    def _abandon(self, job: _Job) -> None:
        job.is_abandoned = True
        self.abandoned += 1
        self._threads -= 1

    def _watch_deadlines(self) -> None:
        while True:
            with self._lock:
                if self._closed and not self._running:
                    return
                now = time.monotonic()
                late = [job for job in self._running if job.deadline is not None and job.deadline <= now]
                for job in late:
                    self._running.discard(job)
                    self._abandon(job)
                    self._ensure_thread()
                if late:
                    self._changed.notify_all()
                else:
                    deadlines = [job.deadline for job in self._running if job.deadline is not None]
                    self._watch_until = min(deadlines, default=math.inf)
                    self._watch.wait(self._watch_until - now if deadlines else None)
            for job in late:
                job.future.set_exception(timed_out(job.timeout_s))
