"""Status codes and `Retry-After` headers of model servers."""

import pytest

from ingest_assets.core.endpoints import MAX_RETRY_AFTER_S, is_busy, retry_after_s

NOW = 1714560000.0  # Wed, 01 May 2024 10:40:00 GMT


@pytest.mark.parametrize(
    ("header", "seconds"),
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
def test_retry_after_is_a_number_of_seconds_or_a_date(header: str, seconds: float | None):
    """At most a day; None for zero and invalid values, so that the usual delay is used."""
    assert retry_after_s(header, NOW) == seconds


def test_only_temporary_errors_are_busy():
    """An invalid request stays invalid."""
    assert [
        status for status in (200, 400, 401, 404, 408, 413, 422, 425, 429, 500, 503) if is_busy(status)
    ] == [
        408,
        425,
        429,
        500,
        503,
    ]
