"""Where items run: in the step itself, on threads, on killable processes, or on a Ray cluster."""

from ingest_assets.backends.choice import Kind, kind_of, open_backend, workers_for
from ingest_assets.backends.kept import KeptBackend
from ingest_assets.backends.local import InlineBackend, ProcessBackend, ThreadBackend, local_backend
from ingest_assets.backends.workers import Machine, choose_workers, probe

__all__ = [
    "InlineBackend",
    "KeptBackend",
    "Kind",
    "Machine",
    "ProcessBackend",
    "ThreadBackend",
    "choose_workers",
    "kind_of",
    "local_backend",
    "open_backend",
    "probe",
    "workers_for",
]
