"""When an item gets another try, and how long it waits for it."""

import random

from ingest_assets.model.errors import StageError
from ingest_assets.model.options import StageOptions

JITTER_SHARE = 0.25


def should_retry(error: StageError, attempt_no: int, options: StageOptions) -> bool:
    """Only errors that say so, and only while attempts are left."""
    return error.retryable and attempt_no <= options.retries


def backoff_s(attempt_no: int, options: StageOptions, rng: random.Random) -> float:
    """`base * 2^(n-1)` after the n-th attempt, plus up to 25 % so that retries do not march in step."""
    return float(options.retry_backoff_s * 2 ** (attempt_no - 1) * (1 + JITTER_SHARE * rng.random()))
