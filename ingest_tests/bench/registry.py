"""Every benchmark by its name, which is its module's; imported only by who runs it, for many are dear."""

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
# What a quick run takes when it is not told: comparisons that say something also of little, and quickly.
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
    """How much of it a quick run takes."""
    return _QUICK_SCALES.get(name, 0.1)


def summary(name: str) -> str:
    """The first line of what it says of itself."""
    return (importlib.import_module(f"{__package__}.{name}").__doc__ or "").partition("\n")[0]


def measure_of(name: str) -> Callable[[Size], list[Figure]]:
    """What measures."""
    found: Callable[[Size], list[Figure]] = importlib.import_module(f"{__package__}.{name}").measure
    return found
