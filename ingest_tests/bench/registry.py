"""Every benchmark by its name, which is its module's."""

from collections.abc import Callable, Mapping

from ingest_tests.bench import (
    artifact_queue,
    chunk_speed,
    coordinator_memory,
    dense_speed,
    document_runs,
    dying_workers,
    fresh_converters,
    idle_coordinator,
    int8_retrieval,
    lexical_speed,
    queue_import,
    reading_speed,
    reruns,
    schedule_order,
    sensor_tick,
    skipped_items,
    stuck_item,
    text_claims,
    trivial_items,
    vector_files,
)
from ingest_tests.bench.figures import Figure, Size

_MODULES = (
    skipped_items,
    trivial_items,
    idle_coordinator,
    stuck_item,
    dying_workers,
    schedule_order,
    artifact_queue,
    queue_import,
    sensor_tick,
    text_claims,
    reading_speed,
    fresh_converters,
    chunk_speed,
    lexical_speed,
    dense_speed,
    int8_retrieval,
    vector_files,
    document_runs,
    reruns,
    coordinator_memory,
)

BENCHMARKS: Mapping[str, Callable[[Size], list[Figure]]] = {
    module.__name__.rpartition(".")[2]: module.measure for module in _MODULES
}
SUMMARIES: Mapping[str, str] = {
    module.__name__.rpartition(".")[2]: (module.__doc__ or "").partition("\n")[0] for module in _MODULES
}
# What a quick run takes when it is not told: comparisons that say something also of little, and quickly.
QUICK_NAMES: tuple[str, ...] = tuple(
    module.__name__.rpartition(".")[2]
    for module in (
        fresh_converters,
        chunk_speed,
        lexical_speed,
        dense_speed,
        vector_files,
        document_runs,
        reruns,
    )
)
# How much of each a quick run takes: what is short anyway, all of it.
QUICK_SCALES: Mapping[str, float] = {
    module.__name__.rpartition(".")[2]: getattr(module, "QUICK", 0.1) for module in _MODULES
}
