"""Request quotas per API, over all processes and restarts."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.quotas import Quotas, QuotaUse
from ingest_assets.settings.intake import QuotaOptions
from ingest_tests.intake.queue.conftest import NOW

TAKER = """
import sys
from pathlib import Path
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.quotas import Quotas
from ingest_assets.settings.intake import QuotaOptions
where, now = sys.argv[1], float(sys.argv[2])
ledger = Ledger(where if "://" in where else Path(where))
quotas = Quotas(ledger.database, {"api": QuotaOptions(rate=50, per_seconds=1000)})
print(sum(quotas.take("api", now) == 0.0 for _ in range(40)))
"""


@pytest.fixture
def quotas(ledger: Ledger) -> Quotas:
    """Three requests in a minute."""
    return Quotas(ledger.database, {"api": QuotaOptions(rate=3, per_seconds=60)})


def test_a_bucket_is_full_at_first_and_refills_evenly(quotas: Quotas) -> None:
    """After the returned wait there is a token."""
    burst = [quotas.take("api", NOW) for _ in range(4)]

    assert burst == [0, 0, 0, 20]
    assert quotas.take("api", NOW + 15) == 5
    assert quotas.take("api", NOW + 20) == 0
    assert quotas.take("api", NOW + 20) == 20
    assert [quotas.take("api", NOW + 1000) for _ in range(4)] == [0, 0, 0, 20]


def test_a_throttled_request_is_counted_and_takes_no_token(quotas: Quotas) -> None:
    """The counters are stored with the bucket; an API without a quota has neither."""
    for _ in range(5):
        quotas.take("api", NOW)
        quotas.take("other", NOW)

    assert quotas.use() == {"api": QuotaUse(consumed=3, throttled=2)}


def test_a_bucket_survives_a_restart(ledger: Ledger, quotas: Quotas) -> None:
    """A new process does not start with a full one; a changed rate applies at once."""
    for _ in range(3):
        quotas.take("api", NOW)

    again = Quotas(ledger.database, {"api": QuotaOptions(rate=6, per_seconds=60)})

    assert again.take("api", NOW) == 10


def test_a_clock_set_back_refills_nothing(quotas: Quotas) -> None:
    """Clocks of machines differ by milliseconds."""
    for _ in range(3):
        quotas.take("api", NOW)

    assert quotas.take("api", NOW - 500) == 20
    assert quotas.take("api", NOW) == 20
    assert quotas.take("api", NOW + 20) == 0


def test_processes_share_a_bucket(ledger_is_at: Path | str) -> None:
    """Four take 40 times each from the 50 there are; the first creates the bucket."""
    Ledger(ledger_is_at).close()
    line = [sys.executable, "-c", TAKER, str(ledger_is_at), str(NOW)]
    started = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(4)]

    taken = [int(process.communicate(timeout=120)[0]) for process in started]

    use = Quotas(Ledger(ledger_is_at).database, {}).use()["api"]
    assert sum(taken) == use.consumed == 50
    assert use.throttled == 110


@given(st.lists(st.floats(0, 30), max_size=40), st.integers(1, 5), st.floats(1, 50))
def test_no_history_exceeds_a_full_bucket_and_its_refill(
    waits: list[float], rate: int, per_seconds: float
) -> None:
    """In any period."""
    quotas = Quotas(Ledger(None).database, {"api": QuotaOptions(rate=rate, per_seconds=per_seconds)})
    now, taken = NOW, list[float]()
    for wait in waits:
        now += wait
        if quotas.take("api", now) == 0:
            taken.append(now)

    for first, start in enumerate(taken):
        for last in range(first, len(taken)):
            refilled = (taken[last] - start) * rate / per_seconds
            assert last - first + 1 <= rate + refilled + 1e-3
