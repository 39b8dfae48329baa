"""A process that acquires a batch: `python -m … LEDGER HOME BATCH MAX_PER_HOST`."""

import sys
import time
from pathlib import Path

from ingest_assets.core.layout import Layout
from ingest_assets.intake.ledger import Ledger
from ingest_tests.intake.acquire.conftest import Intake


def main() -> None:
    """Wait for the start signal, then acquire until nothing is left."""
    where, home, batch, max_per_host = sys.argv[1:]
    ledger = Ledger(where if "://" in where else Path(where))
    patient = {"idle_timeout_s": 50, "total_timeout_s": 50}  # pages can hold a request until others come
    options = {"max_per_host": int(max_per_host)}
    intake = Intake(Layout(Path(home)), ledger, fetch=patient, queue_options=options)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    report = intake.run(batch, clock=time.time)
    sys.stdout.write(f"{report.ended['done']}\n")


if __name__ == "__main__":
    main()
