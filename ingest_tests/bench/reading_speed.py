"""Reading documents: two workers of ours against Docling's own loop on the same two cores, both warm.

Docling's loop is `convert_all` and `export_to_doctags`, with the same engine for PDFs; ours is the doctags
stage as it runs in the product, with inspection, JSON and staged rows on top.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ingest_assets.defs.reading_ahead import read_ahead
from ingest_assets.model.items import Plan, WorkItem
from ingest_assets.model.options import StageOptions
from ingest_assets.runner import NoProgress, run_stage
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.worker import StageWorker
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.parts import Parts
from ingest_tests.bench.documents import documents_of, long_document
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.reading import (
    CORES,
    docling_converter,
    docling_loop,
    document_item,
    warm_workers,
)

ROUNDS = 3
LONG_PAGES = 48
FAMILIES = {"html": 1.7, "docx": 1.7, "md": 1.7, "pdf": 1.4}
_BATCH = "bench"


def measure(size: Size) -> list[Figure]:
    """How many times as fast, for each format on its own; and how many documents read differently."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    figures = []
    with tempfile.TemporaryDirectory() as folder, warm_workers(DoctagsStage.preload) as backend:
        docling = docling_converter()
        for kind, wanted in FAMILIES.items():
            paths = _readable(documents_of([kind], size, Path(folder)), docling)
            figures += _compared(kind, wanted, paths, Path(folder) / "home", docling, backend)
        figures += _shared(long_document(Path(folder), size.of(LONG_PAGES)), Path(folder) / "home", backend)
    return figures


def _shared(path: Path, home: Path, backend: Any) -> Iterator[Figure]:
    """One long document: read by one worker, and by both in ranges of pages."""
    stage, options = DoctagsStage(), StageOptions()
    item = document_item(path)
    item = replace(item, output_paths=(str(Parts(Layout(home), stage.spec, _BATCH).path(item.item_id)),))
    alone_s = _seconds(lambda: _stage([item], home, backend))
    (alone,) = _staged([item], home)

    def both() -> None:
        read_ahead(stage, [item], options, backend, NoProgress(), lambda line: None)
        _stage([item], home, backend)

    both_s = _seconds(both)
    (shared,) = _staged([item], home)
    yield Figure("long pdf: ratio of one worker to both", alone_s / both_s, "times", ">=", 1)
    yield Figure("long pdf: documents with other doctags", shared != alone, "docs", "=", 0)


def _compared(
    kind: str, wanted: float, paths: Sequence[Path], home: Path, docling: Any, backend: Any
) -> Iterator[Figure]:
    items = [document_item(path) for path in paths]
    wanted_texts = docling_loop(docling, paths)  # warms up
    _stage(items, home, backend)
    # in turns, and the best of each: a busy neighbour must not decide
    rounds = [
        (_seconds(lambda: docling_loop(docling, paths)), _seconds(lambda: _stage(items, home, backend)))
        for _ in range(ROUNDS)
    ]
    theirs_s, ours_s = (min(seconds) for seconds in zip(*rounds, strict=True))
    different = sum(mine != other for mine, other in zip(_staged(items, home), wanted_texts, strict=True))
    yield Figure(f"{kind}: Docling's loop", len(paths) / theirs_s, "docs/s")
    yield Figure(f"{kind}: two workers", len(paths) / ours_s, "docs/s")
    yield Figure(f"{kind}: ratio", theirs_s / ours_s, "times", ">=", wanted)
    yield Figure(f"{kind}: documents with other doctags", different, "docs", "=", 0)


def _seconds(reading: Callable[[], object]) -> float:
    started = time.perf_counter()
    reading()
    return time.perf_counter() - started


def _stage(items: Sequence[WorkItem], home: Path, backend: Any) -> None:
    stage = DoctagsStage()
    plan = Plan(stage.name, items, len(items))
    outcome = run_stage(plan, StageWorker(stage, str(home), _BATCH), StageOptions(), backend=backend)
    assert outcome.succeeded == len(items), outcome.errors


def _staged(items: Sequence[WorkItem], home: Path) -> list[str]:
    parts = Parts(Layout(home), DoctagsStage.spec, _BATCH)
    return [parts.read(item.item_id).column("doctags")[0].as_py() for item in items]


def _readable(paths: Sequence[Path], docling: Any) -> list[Path]:
    """Those that Docling can read and write; a folder of one's own may have others."""
    found = []
    for path in paths:
        with contextlib.suppress(Exception):
            docling.convert(path).document.export_to_doctags()
            found.append(path)
    return found
