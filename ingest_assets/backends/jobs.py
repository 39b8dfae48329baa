"""Jobs and their results, for all backends. Callers have job ids; futures are internal."""

import abc
import itertools
import pickle
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, Self

from ingest_assets.backends.worker_process import cancelled
from ingest_assets.core.errors import JobNotFound, ResultTimeout, SubmitFailed, caught
from ingest_assets.core.ports import Work

_numbers = itertools.count(1)  # for all backends together, so that ids are unique


class JobBackend(abc.ABC):
    """Job ids for the futures of a backend. A result is kept until it is returned, also after `close`."""

    def __init__(self) -> None:
        self._futures: dict[str, Future[Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, work: Work, timeout_s: float = 0.0, on_end: Callable[[str], None] | None = None) -> str:
        """Start work now, or as soon as a worker is free, and return the job id."""
        return self._track(lambda: self._start(work, timeout_s), on_end)

    def get_result(self, job_id: str, timeout: float | None = None) -> Any:
        """Wait for the result of a job, return it and release the job id; raise what the work raised."""
        future = self._known(job_id)
        try:
            error = future.exception(timeout)
        except CancelledError:
            error = cancelled()
        except TimeoutError:
            raise ResultTimeout(
                f"{job_id} has no result after {timeout:g} s; it waits or runs. Call get_result again."
            ) from None
        if self._futures.pop(job_id, None) is None:  # another thread has returned it
            raise _not_found(job_id)
        if error is not None:
            raise error
        return future.result()

    def cancel(self, job_id: str) -> bool:
        """Cancel a job that has not started; False if it has."""
        return self._known(job_id).cancel()

    @abc.abstractmethod
    def close(self, grace_s: float = 0.0) -> None:
        """Let running jobs finish for `grace_s`, then stop them. Every job has a result afterwards."""

    @abc.abstractmethod
    def _start(self, work: Work, timeout_s: float) -> Future[Any]:
        """Start work; the future ends with its value or an `ItemError`. Raises `SubmitFailed`."""

    def _track(self, start: Callable[[], Future[Any]], on_end: Callable[[str], None] | None = None) -> str:
        future, error = caught(start)
        if isinstance(error, SubmitFailed):
            raise error
        if future is None:
            raise SubmitFailed(f"the job did not start: {type(error).__name__}: {error}")
        job_id = f"job-{next(_numbers)}"
        self._futures[job_id] = future
        if on_end is not None:
            future.add_done_callback(lambda _: on_end(job_id))
        return job_id

    def _known(self, job_id: str) -> Future[Any]:
        future = self._futures.get(job_id)
        if future is None:
            raise _not_found(job_id)
        return future


def pickled(work: Work) -> bytes:
    """Return work for another process; raise `SubmitFailed` if it cannot be pickled."""
    blob, error = caught(lambda: pickle.dumps(work))
    if blob is None:
        raise SubmitFailed(
            f"the work cannot be pickled ({type(error).__name__}: {error}); submit a module's function or "
            "a functools.partial of one"
        )
    return blob


def _not_found(job_id: str) -> JobNotFound:
    return JobNotFound(f"No job {job_id!r}: the id is unknown, or its result was already returned.")
