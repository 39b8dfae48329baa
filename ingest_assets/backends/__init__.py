"""Where items run. Today: threads and killable processes on this machine."""

from ingest_assets.backends.local import ProcessBackend, ThreadBackend, local_backend
from ingest_assets.backends.workers import Machine, choose_workers, probe

__all__ = ["Machine", "ProcessBackend", "ThreadBackend", "choose_workers", "local_backend", "probe"]
