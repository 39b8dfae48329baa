"""Quotas and pauses, with a simulated clock."""

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.embedders.endpoint import Pace, PerMinute, QuotaShare


@given(
    limit=st.integers(1, 20),
    asks=st.lists(st.tuples(st.floats(0, 30, allow_nan=False), st.integers(1, 25)), max_size=60),
)
def test_no_minute_holds_more_than_the_limit(limit: int, asks: list[tuple[float, int]]):
    """A caller that waits as returned gets a share; an amount above the limit is alone in its minute."""
    quota, now, taken = PerMinute(limit), 0.0, list[QuotaShare]()
    for pause, amount in asks:
        now += pause
        while not isinstance(share := quota.take(amount, now), QuotaShare):
            assert share > 0
            now += share
        taken.append(share)

    for share in taken:
        minute = [other.amount for other in taken if share.moment <= other.moment < share.moment + 59.99]
        assert sum(minute) <= limit or len(minute) == 1


def test_a_limit_of_zero_is_unlimited():
    """0 is the default."""
    quota = PerMinute(0)

    assert all(isinstance(quota.take(10**9, 0.0), QuotaShare) for _ in range(100))


def test_a_corrected_amount_counts():
    """An estimate that was too high does not delay the next request."""
    quota = PerMinute(100)
    share = quota.take(100, 0.0)
    assert quota.take(50, 1.0) == 59.0
    assert isinstance(share, QuotaShare)
    share.amount = 40

    assert isinstance(quota.take(50, 2.0), QuotaShare)


def test_pauses_double_up_to_a_limit_and_respect_the_server():
    """With jitter, so that clients do not retry at the same time."""
    pace = Pace(jitter=lambda: 1.0)

    assert [pace.pause(attempt, None) for attempt in (1, 2, 3, 99)] == [0.625, 1.25, 2.5, 37.5]
    assert [pace.pause(1, asked) for asked in (7.0, 86400.0)] == [7.0, 60.0]


def test_a_retry_after_of_zero_gets_the_usual_pause():
    """`Retry-After: 0` or a past date would use up all attempts at once."""
    pace = Pace(jitter=lambda: 1.0)

    assert [pace.pause(attempt, 0.0) for attempt in (1, 2, 3, 99)] == [0.625, 1.25, 2.5, 37.5]
    assert pace.pause(4, 1.0) == 5.0
