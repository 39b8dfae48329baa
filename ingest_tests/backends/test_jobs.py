"""One contract for all backends: `submit` starts a job, `get_result` returns its result."""

import os
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from ingest_assets.backends import InlineBackend, ProcessBackend, ThreadBackend
from ingest_assets.core.errors import (
    DocumentMissing,
    ItemError,
    ItemTimeout,
    JobNotFound,
    ResultTimeout,
    SubmitFailed,
)
from ingest_assets.core.ports import ExecutionBackend

LONG_S = 120  # enough for a worker to start on a busy machine


def add(left: int, right: int) -> int:
    """Work with a value."""
    return left + right


def sleep(seconds: float) -> str:
    """Work that takes a while."""
    time.sleep(seconds)
    return "slept"


def fail(error: Exception) -> None:
    """Work that raises."""
    raise error


def make_lock() -> object:
    """Work whose value cannot be pickled."""
    return threading.Lock()


def is_pickling(backend: ExecutionBackend) -> bool:
    """True if the backend runs work in another process."""
    return not isinstance(backend, InlineBackend | ThreadBackend)


def code_of(backend: ExecutionBackend, job_id: str, timeout: float | None = LONG_S) -> str:
    """Return the error code of a failed job."""
    with pytest.raises(ItemError) as caught:
        backend.get_result(job_id, timeout)
    return caught.value.code


def test_a_job_has_an_id_and_a_result(any_backend):
    """Ids are unique, and results can be read in any order."""
    ids = [any_backend.submit(partial(add, number, 1)) for number in range(6)]

    assert len(set(ids)) == 6
    assert [any_backend.get_result(job_id) for job_id in reversed(ids)] == [6, 5, 4, 3, 2, 1]


def test_submit_starts_at_once_and_does_not_wait(backend):
    """A job runs while its caller continues."""
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()
    job_id = backend.submit(partial(sleep, 0.3), on_end=ended.put)
    assert ended.empty()

    assert ended.get(timeout=LONG_S) == job_id  # before a call of `get_result`
    assert backend.get_result(job_id, 0) == "slept"


def test_a_result_can_be_requested_again_after_a_timeout(backend):
    """The timeout belongs to the call; the job continues."""
    job_id = backend.submit(partial(sleep, 1))

    assert code_of(backend, job_id, 0) == ResultTimeout.code == "E_EXECUTION_TIMEOUT"
    assert code_of(backend, job_id, 0.05) == "E_EXECUTION_TIMEOUT"
    assert backend.get_result(job_id, LONG_S) == "slept"


def test_an_unknown_or_released_id_is_not_found(any_backend):
    """A result or an error is returned once; ids of other backends are unknown."""
    done, failed = any_backend.submit(partial(add, 1, 1)), any_backend.submit(partial(fail, ValueError()))
    assert any_backend.get_result(done) == 2
    assert code_of(any_backend, failed) == "E_UNKNOWN"
    with InlineBackend() as other:
        foreign = other.submit(partial(add, 1, 1))

    for job_id in (done, failed, "job-0", foreign):
        assert code_of(any_backend, job_id) == JobNotFound.code == "E_EXECUTION_NOT_FOUND"
        with pytest.raises(JobNotFound):
            any_backend.cancel(job_id)


def test_of_two_callers_that_wait_for_a_result_one_gets_it(backend):
    """The other gets `JobNotFound`."""
    job_id = backend.submit(partial(sleep, 0.5))
    with ThreadPoolExecutor(2) as callers:
        waiting = [callers.submit(backend.get_result, job_id) for _ in range(2)]
        errors = [call.exception(LONG_S) for call in waiting]

    assert sorted(type(error).__name__ for error in errors) == ["JobNotFound", "NoneType"]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DocumentMissing("no such page", detail={"page": 3}), "E_DOCUMENT_MISSING", "no such page"),
        (ValueError("odd"), "E_UNKNOWN", "ValueError: odd"),
        (MemoryError(), "E_RESOURCE_MEMORY", "the machine is out of memory"),
    ],
)
def test_get_result_raises_the_exception_of_the_work(any_backend, error, code, message):
    """It is raised as an error with a code, and the worker stays usable."""
    with pytest.raises(ItemError, match=message) as caught:
        any_backend.get_result(any_backend.submit(partial(fail, error)), LONG_S)

    assert caught.value.code == code
    assert caught.value.detail == getattr(error, "detail", {})
    assert any_backend.get_result(any_backend.submit(partial(add, 2, 2)), LONG_S) == 4


def test_work_that_exits_fails_only_its_job(any_backend):
    """`sys.exit` in a library does not stop the worker."""
    assert code_of(any_backend, any_backend.submit(partial(sys.exit, 3))) == "E_UNKNOWN"
    assert any_backend.get_result(any_backend.submit(partial(add, 2, 2)), LONG_S) == 4


def test_work_that_cannot_be_started_is_rejected(any_backend):
    """It cannot be pickled for another process, or the backend is closed."""
    if is_pickling(any_backend):
        with pytest.raises(SubmitFailed, match="pickle") as caught:
            any_backend.submit(lambda: None)
        assert caught.value.code == "E_EXECUTION_SUBMIT"
    any_backend.close()
    any_backend.close()

    with pytest.raises(SubmitFailed, match="closed"):
        any_backend.submit(partial(add, 1, 1))


def test_a_value_that_cannot_be_pickled_fails_only_its_job(any_backend):
    """The worker stays usable."""
    job_id = any_backend.submit(make_lock)
    if is_pickling(any_backend):
        assert code_of(any_backend, job_id) == "E_CONTRACT"
    else:
        assert hasattr(any_backend.get_result(job_id), "acquire")

    assert any_backend.get_result(any_backend.submit(partial(add, 2, 2)), LONG_S) == 4


def test_a_job_that_exceeds_its_limit_ends_and_others_run(backend):
    """The limit applies to the work, not to the wait for its result."""
    slow = backend.submit(partial(sleep, 60), timeout_s=0.5)
    quick = backend.submit(partial(add, 2, 2))

    assert code_of(backend, slow) == ItemTimeout.code == "E_TIMEOUT"
    assert backend.get_result(quick, LONG_S) == 4


def test_a_job_that_kills_its_worker_fails_only_itself(killable):
    """Native code can crash."""
    ids = [killable.submit(partial(os._exit, 3)), *(killable.submit(partial(add, n, n)) for n in range(3))]

    assert code_of(killable, ids[0]) == "E_WORKER_DIED"
    assert [killable.get_result(job_id, LONG_S) for job_id in ids[1:]] == [0, 2, 4]


def test_only_a_waiting_job_can_be_cancelled(backend):
    """A running job ends by itself, at its limit or with the backend."""
    running = [backend.submit(partial(sleep, 2)) for _ in range(2)]
    waiting = backend.submit(partial(add, 1, 1))

    assert backend.cancel(waiting)
    assert code_of(backend, waiting) == "E_CANCELLED"
    assert backend.get_result(running[0], LONG_S) == "slept"
    assert not backend.cancel(running[1]) or code_of(backend, running[1]) == "E_CANCELLED"


def test_after_closing_every_job_has_a_result(backend):
    """Finished jobs keep their value, the others are cancelled."""
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()
    done = backend.submit(partial(add, 1, 1), on_end=ended.put)
    ended.get(timeout=LONG_S)
    others = [backend.submit(partial(sleep, 60)) for _ in range(5)]
    backend.close()

    assert backend.get_result(done, 0) == 2
    assert {code_of(backend, job_id, 0) for job_id in others} == {"E_CANCELLED"}


def test_the_with_statement_closes_a_backend():
    """A closed backend accepts no work."""
    with ProcessBackend(1) as backend:
        assert backend.get_result(backend.submit(partial(add, 1, 1)), LONG_S) == 2

    with pytest.raises(SubmitFailed):
        backend.submit(partial(add, 1, 1))
