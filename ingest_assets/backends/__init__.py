"""Where items run: inline in the step, on threads, on killable processes, or on a Ray cluster.

`open.py` chooses and opens a backend, `workers.py` its number of workers; `threads.py`, `processes.py` with
`worker_process.py`, and `ray.py` are the backends. Each stops an item at its time limit (inline cannot) and
reports a worker that crashed or exceeded its memory limit; `runner/schedule.py` decides about retries. All
backends produce the same bytes.
"""

from ingest_assets.backends.open import InlineBackend, Kind, kind_of, open_backend, workers_for
from ingest_assets.backends.processes import ProcessBackend
from ingest_assets.backends.threads import ThreadBackend
from ingest_assets.backends.workers import Machine, choose_workers, probe

__all__ = [
    "InlineBackend",
    "Kind",
    "Machine",
    "ProcessBackend",
    "ThreadBackend",
    "choose_workers",
    "kind_of",
    "open_backend",
    "probe",
    "workers_for",
]
