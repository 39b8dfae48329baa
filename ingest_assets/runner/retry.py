"""When an item gets another try, and how long it waits for it."""

import random

from ingest_assets.model.errors import StageError, WorkerLost
from ingest_assets.model.options import StageOptions

JITTER_SHARE = 0.25
MAX_LOSSES = 5


def is_loss(error: StageError) -> bool:
    """True when the item's machine went away: that costs an attempt, never one of the item's retries."""
    return error.code == WorkerLost.code


def should_retry(error: StageError, attempt_no: int, losses: int, options: StageOptions) -> bool:
    """Only errors that say so, and only while attempts are left; `losses` counts this one too."""
    if is_loss(error):
        return losses <= MAX_LOSSES
    return error.retryable and attempt_no - losses <= options.retries


def backoff_s(attempt_no: int, options: StageOptions, rng: random.Random) -> float:
    """`base * 2^(n-1)` after the n-th attempt, plus up to 25 % so that retries do not march in step."""
    return float(options.retry_backoff_s * 2 ** (attempt_no - 1) * (1 + JITTER_SHARE * rng.random()))
