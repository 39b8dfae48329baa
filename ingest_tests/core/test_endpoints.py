"""What servers of models say, read with distrust."""

import pytest

from ingest_assets.core.endpoints import MAX_RETRY_AFTER_S, is_busy, retry_after_s

NOW = 1714560000.0  # Wed, 01 May 2024 10:40:00 GMT


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("7", 7),
        (" 60 ", 60),
        ("0", None),
        ("99999999999999999999", MAX_RETRY_AFTER_S),
        ("Wed, 01 May 2024 10:41:00 GMT", 60),
        ("Wed, 01 May 2024 10:00:00 GMT", None),
        ("Wed, 01 May 2099 10:00:00 GMT", MAX_RETRY_AFTER_S),
        *[
            (text, None)
            for text in ("", "-5", "soon", "1.5", "٣", "Wed, 99 May 2024 10:41:00 GMT", "," * 500)
        ],
    ],
)
def test_a_server_asks_for_a_pause_in_seconds_or_with_a_date(given: str, seconds: float | None):
    """Never more than a day; no pause at all, like nonsense, is silence: the usual pause is taken."""
    assert retry_after_s(given, NOW) == seconds


def test_busy_is_what_may_pass_by_itself():
    """A request that the server does not understand will not be understood later."""
    assert [
        status for status in (200, 400, 401, 404, 408, 413, 422, 425, 429, 500, 503) if is_busy(status)
    ] == [
        408,
        425,
        429,
        500,
        503,
    ]
