"""Bounds inside a process that can change while it runs."""

import threading
import time
from collections.abc import Callable

import pytest

from ingest_assets.intake.limits import KeyedLimiter

SOON_S = 10.0


def wait_until(is_so: Callable[[], bool]) -> None:
    """For what another thread is about to do."""
    give_up = time.monotonic() + SOON_S
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.001)


def test_keys_have_limits_of_their_own() -> None:
    """A full one says so at once to who does not want to wait."""
    limiter = KeyedLimiter({"a": 2, "b": 1})

    assert [limiter.acquire("a", 0) for _ in range(3)] == [True, True, False]
    assert [limiter.acquire("b", 0) for _ in range(2)] == [True, False]
    assert [limiter.acquire("c", 0) for _ in range(50)] == [True] * 50
    assert (limiter.held("a"), limiter.held("b")) == (2, 1)


def test_a_default_is_for_every_other_key() -> None:
    """Each has as many as the default, not all together."""
    limiter = KeyedLimiter({"a": 2}, default=1)

    assert [limiter.acquire(key, 0) for key in ("x", "x", "y", "a", "a", "a")] == [
        True,
        False,
        True,
        True,
        True,
        False,
    ]


def test_a_place_that_is_left_goes_to_who_waits() -> None:
    """And a wait has an end."""
    limiter = KeyedLimiter({"a": 1})
    limiter.acquire("a")
    entered = threading.Event()
    thread = threading.Thread(target=lambda: (limiter.acquire("a"), entered.set()), daemon=True)
    thread.start()

    assert not entered.wait(0.05)
    assert not limiter.acquire("a", 0.01)
    limiter.release("a")

    assert entered.wait(SOON_S)
    assert limiter.held("a") == 1


def test_a_raised_limit_lets_those_who_wait_go_on_at_once() -> None:
    """Without anybody leaving."""
    limiter = KeyedLimiter({"a": 1})
    limiter.acquire("a")
    for _ in range(3):
        threading.Thread(target=limiter.acquire, args=("a",), daemon=True).start()

    limiter.set_limit("a", 3)
    wait_until(lambda: limiter.held("a") == 3)
    time.sleep(0.02)
    at_three = limiter.held("a")
    limiter.set_limit("a", None)

    wait_until(lambda: limiter.held("a") == 4)
    assert at_three == 3


def test_a_lowered_limit_stops_nobody_and_lets_nobody_follow() -> None:
    """Until enough have left."""
    limiter = KeyedLimiter({"a": 3})
    for _ in range(3):
        limiter.acquire("a")

    limiter.set_limit("a", 1)
    held = limiter.held("a")
    entered = []
    for _ in range(3):
        limiter.release("a")
        entered.append(limiter.acquire("a", 0))
        if entered[-1]:
            break

    assert held == 3
    assert entered == [False, False, True]
    limiter.set_limit("a", 0)
    limiter.release("a")
    assert not limiter.acquire("a", 0)


def test_release_without_acquire_is_an_error() -> None:
    """It would raise the limit for ever; also on a key that has no limit."""
    limiter = KeyedLimiter({"a": 1})
    limiter.acquire("a")
    limiter.release("a")

    for key in ("a", "never seen"):
        with pytest.raises(RuntimeError, match=key):
            limiter.release(key)
    assert limiter.acquire("a", 0)
    assert not limiter.acquire("a", 0)


def test_a_block_leaves_its_place_also_when_it_fails() -> None:
    """Or the key would be lost."""
    limiter = KeyedLimiter({"a": 1})

    with pytest.raises(ZeroDivisionError), limiter.holding("a"):
        assert 1 / (limiter.held("a") - 1)

    assert limiter.held("a") == 0


def test_many_threads_are_never_above_the_limit() -> None:
    """While it is raised and lowered under them; everybody gets through."""
    limiter, lock = KeyedLimiter({"a": 4}), threading.Lock()
    inside, most, through = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, through
        for _ in range(30):
            with limiter.holding("a"):
                with lock:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.0002)
                with lock:
                    inside -= 1
                    through += 1

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for limit in (1, 4, 2, 3, 4) * 5:
        limiter.set_limit("a", limit)
        time.sleep(0.002)
    for thread in threads:
        thread.join(60)

    assert through == 360
    assert 1 <= most <= 4
