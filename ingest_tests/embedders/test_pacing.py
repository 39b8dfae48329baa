"""Quotas and pauses, by a clock that only goes when told."""

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.embedders.endpoint import Pace, PerMinute, Taken


@given(
    limit=st.integers(1, 20),
    asks=st.lists(st.tuples(st.floats(0, 30, allow_nan=False), st.integers(1, 25)), max_size=60),
)
def test_no_minute_holds_more_than_the_limit(limit: int, asks: list[tuple[float, int]]):
    """Whoever waits as long as told gets a share; only what is larger than the limit exceeds it, alone."""
    quota, now, taken = PerMinute(limit), 0.0, list[Taken]()
    for pause, amount in asks:
        now += pause
        while not isinstance(share := quota.take(amount, now), Taken):
            assert share > 0
            now += share
        taken.append(share)

    for share in taken:
        minute = [other.amount for other in taken if share.moment <= other.moment < share.moment + 59.99]
        assert sum(minute) <= limit or len(minute) == 1


def test_no_limit_is_no_limit():
    """0 = any."""
    quota = PerMinute(0)

    assert all(isinstance(quota.take(10**9, 0.0), Taken) for _ in range(100))


def test_what_was_really_used_counts():
    """An estimate that was too high does not hold up the next request."""
    quota = PerMinute(100)
    share = quota.take(100, 0.0)
    assert quota.take(50, 1.0) == 59.0
    assert isinstance(share, Taken)
    share.amount = 40

    assert isinstance(quota.take(50, 2.0), Taken)


def test_pauses_grow_to_a_limit_and_follow_the_server_within_reason():
    """Twice as long each time, with a little chance, so that clients do not march in step."""
    pace = Pace(chance=lambda: 1.0)

    assert [pace.pause(attempt, None) for attempt in (1, 2, 3, 99)] == [0.625, 1.25, 2.5, 37.5]
    assert [pace.pause(1, asked) for asked in (7.0, 86400.0)] == [7.0, 60.0]


def test_a_server_that_asks_for_no_pause_gets_the_usual_one():
    """`Retry-After: 0`, or a date that is past, would spend all attempts within a moment."""
    pace = Pace(chance=lambda: 1.0)

    assert [pace.pause(attempt, 0.0) for attempt in (1, 2, 3, 99)] == [0.625, 1.25, 2.5, 37.5]
    assert pace.pause(4, 1.0) == 5.0
