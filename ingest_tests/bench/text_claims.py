"""Claims on texts: add 500 where a million exist, and remove 500 that others duplicate."""

import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ingest_assets.intake.duplicates import Claim, Claims
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.schema import claims as table
from ingest_tests.bench.figures import Figure, Size

KNOWN = 1_000_000
BATCH = 500
_ROWS_AT_A_TIME = 50_000


def measure(size: Size) -> list[Figure]:
    """Run on SQLite; half of the new documents duplicate known ones."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        known = size.of(KNOWN)
        _fill(ledger, known)
        claims = Claims(ledger)
        new = [_claim(f"new {n}", known + n + 1, n * 7 if n % 2 else -n - 1) for n in range(BATCH)]
        claiming_s = _timed(lambda: claims.replace("new", new))
        reading_s = _timed(lambda: claims.of("new"))
        ending_s = _timed(lambda: claims.replace("batch 0", []))
        ledger.close()
    return [
        Figure("claiming 500 more", claiming_s, "s", "<", 1),
        Figure("reading how they stand", reading_s, "s"),
        Figure("giving up 500 that others repeat", ending_s, "s"),
    ]


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _claim(doc_id: str, seq: int, text: int) -> Claim:
    return Claim(doc_id, seq, "basis", hashlib.sha256(str(text).encode()).hexdigest(), is_eligible=True)


def _fill(ledger: Ledger, count: int) -> None:
    names = ("doc_id", "seq", "basis", "text_hash", "is_eligible")
    with ledger.begin() as connection:
        for start in range(0, count, _ROWS_AT_A_TIME):
            some = (_claim(f"doc {n}", n + 1, n) for n in range(start, min(start + _ROWS_AT_A_TIME, count)))
            rows = [{name: getattr(claim, name) for name in names} for claim in some]
            batches = [{"batch": f"batch {row['seq'] // BATCH}"} for row in rows]
            connection.execute(
                table.insert(), [row | batch for row, batch in zip(rows, batches, strict=True)]
            )
