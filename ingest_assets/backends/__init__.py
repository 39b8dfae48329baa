"""Where items run: in the step itself, on threads, on killable processes, or on a Ray cluster.

`open.py` chooses and opens a backend, `workers.py` how many workers it gets; `threads.py`, `processes.py`
with `worker_process.py`, and `ray.py` are the backends. Each stops an item at its time limit (inline cannot)
and says how a worker died, by a crash or at its memory limit; `runner/schedule.py` decides what then. All
give the same bytes.
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
