"""Every benchmark by its module's name; imported only when run, because many imports are slow."""

import importlib
from collections.abc import Callable, Mapping

from ingest_tests.bench.figures import Figure, Size

NAMES = (
    "skipped_items",
    "trivial_items",
    "idle_coordinator",
    "stuck_item",
    "dying_workers",
    "schedule_order",
    "artifact_queue",
    "queue_import",
    "sensor_tick",
    "text_claims",
    "reading_speed",
    "fresh_converters",
    "chunk_speed",
    "dense_speed",
    "int8_retrieval",
    "vector_files",
    "document_runs",
    "reruns",
    "coordinator_memory",
)
# The default of a quick run: comparisons that are fast and meaningful on little data.
QUICK_NAMES = ("chunk_speed", "dense_speed", "vector_files", "reruns")
_QUICK_SCALES: Mapping[str, float] = {
    "chunk_speed": 0.15,
    "coordinator_memory": 0.01,
    "dense_speed": 0.2,
    "document_runs": 0.04,
    "fresh_converters": 0.4,
    "int8_retrieval": 1.0,
    "reruns": 0.01,
    "vector_files": 0.05,
}


def quick_scale(name: str) -> float:
    """Return the scale of a quick run."""
    return _QUICK_SCALES.get(name, 0.1)


def summary(name: str) -> str:
    """Return the first line of its docstring."""
    return (importlib.import_module(f"{__package__}.{name}").__doc__ or "").partition("\n")[0]


def measure_of(name: str) -> Callable[[Size], list[Figure]]:
    """Return its measuring function."""
    found: Callable[[Size], list[Figure]] = importlib.import_module(f"{__package__}.{name}").measure
    return found
