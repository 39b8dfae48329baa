"""Reading documents: two workers of the product against Docling's own loop on two cores, both warm.

Docling's loop is `convert_all` and `export_to_doctags`, with the same engine for PDFs; ours is the doctags
stage as it runs in the product, with inspection, JSON and staged rows on top.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ingest_assets.app.stage_run import before_batch
from ingest_assets.core.items import Plan, WorkItem
from ingest_assets.core.layout import Layout
from ingest_assets.runner import NoProgress, RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_assets.stages.base import StageWorker
from ingest_assets.stages.doctags import DoctagsStage, PageStore
from ingest_assets.storage.table import Parts
from ingest_tests.bench.comparing import compared
from ingest_tests.bench.documents import documents_of, long_document
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.reading import (
    CORES,
    docling_converter,
    docling_loop,
    document_item,
    warm_workers,
)

LONG_PAGES = 48
FAMILIES = {"html": 1.7, "docx": 1.7, "md": 1.7, "pdf": 1.4}
_BATCH = "bench"


def measure(size: Size) -> list[Figure]:
    """Measure how many times as fast, for each format, and how many documents are read differently."""
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
    """Measure a long document: read by one worker, and by both in ranges of pages."""
    stage, options = DoctagsStage(), StageOptions()
    item = document_item(path)
    item = replace(item, output_paths=(str(Parts(Layout(home), stage.spec, _BATCH).path(item.item_id)),))

    def alone() -> list[str]:
        _stage([item], home, backend)
        return _staged([item], home)

    def both() -> list[str]:
        stage.before_batch(before_batch([item], options, backend, NoProgress(), lambda line: None))
        return alone()

    done = compared(alone, both, before_each=PageStore(item).clear)
    yield done.figure("long pdf: ratio of one worker to both", ">=", 1)
    yield Figure("long pdf: documents with other doctags", done.naive != done.ours, "docs", "=", 0)


def _compared(
    kind: str, least_ratio: float, paths: Sequence[Path], home: Path, docling: Any, backend: Any
) -> Iterator[Figure]:
    if not paths:
        yield Figure(f"{kind}: documents", 0, "docs", note="not measured: none that Docling can read")
        return
    items = [document_item(path) for path in paths]
    docling_loop(docling, paths)  # warms up
    _stage(items, home, backend)
    done = compared(lambda: docling_loop(docling, paths), lambda: _stage(items, home, backend))
    different = sum(mine != other for mine, other in zip(_staged(items, home), done.naive, strict=True))
    yield Figure(f"{kind}: Docling's loop", len(paths) / done.naive_s, "docs/s")
    yield Figure(f"{kind}: two workers", len(paths) / done.ours_s, "docs/s")
    yield done.figure(f"{kind}: ratio", ">=", least_ratio)
    yield Figure(f"{kind}: documents with other doctags", different, "docs", "=", 0)


def _stage(items: Sequence[WorkItem], home: Path, backend: Any) -> None:
    stage = DoctagsStage()
    plan = Plan(stage.name, items, len(items))
    outcome = run_stage(RunSpec(plan, StageWorker(stage, str(home), _BATCH), StageOptions(), backend=backend))
    assert outcome.succeeded == len(items), outcome.errors


def _staged(items: Sequence[WorkItem], home: Path) -> list[str]:
    parts = Parts(Layout(home), DoctagsStage.table, _BATCH)
    return [parts.read(item.item_id).column("doctags")[0].as_py() for item in items]


def _readable(paths: Sequence[Path], docling: Any) -> list[Path]:
    """Return the documents that Docling can read and write; a user's folder may have others."""
    readable = []
    for path in paths:
        with contextlib.suppress(Exception):
            docling.convert(path).document.export_to_doctags()
            readable.append(path)
    return readable
