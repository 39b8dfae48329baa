"""Helpers for reading benchmarks: files as items of the doctags stage, read here or by warm workers."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ingest_assets.backends import ProcessBackend
from ingest_assets.core.errors import ItemError
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.parsing.media import media_type
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.stages.doctags import DoctagsStage

CORES = 2


def document_item(path: Path) -> WorkItem:
    """Return a file as an item of the doctags stage."""
    content = path.read_bytes()
    meta = {
        "content_hash": hashlib.sha256(content).hexdigest(),
        "mime": media_type(path.name, content),
        "path": str(path),
        "name": path.name,
    }
    return WorkItem(str(path), "f", meta=meta, cost_hint=len(content))


def converted(paths: Sequence[Path]) -> list[pa.Table]:
    """Return a row per document that can be read and has text; a user's folder may have others."""
    rows = []
    for path in paths:
        with contextlib.suppress(ItemError):
            row = DoctagsStage().rows(document_item(path), ItemContext())
            rows += [row] if row["chars"][0].as_py() else []
    return rows


def docling_converter() -> Any:
    """Return Docling's converter with our PDF engine, on as many threads as there are cores."""
    from ingest_assets.parsing.reader import DocumentReader

    DocumentReader(ParsingOptions(), CORES)  # keeps the libraries quiet and offline
    from docling.datamodel.base_models import InputFormat
    from docling.document_converter import DocumentConverter, PdfFormatOption

    from ingest_assets.parsing.pipelines import Pipelines

    engines = Pipelines(ParsingOptions(), CORES)
    pipeline = engines.pipeline("pdf")
    option = PdfFormatOption(
        pipeline_cls=type(pipeline),
        pipeline_options=pipeline.pipeline_options,
        backend=engines.backend("pdf"),
        backend_options=engines.backend_options("pdf"),
    )
    return DocumentConverter(format_options={InputFormat.PDF: option})


def docling_loop(converter: Any, paths: Sequence[Path]) -> list[str]:
    """Return the doctags of each document, read with Docling alone."""
    return [result.document.export_to_doctags() for result in converter.convert_all(paths)]


class _Warm(ProcessBackend):
    """A backend that stays open between runs, like workers between items."""

    def close(self, grace_s: float) -> None:
        """Do nothing; the owner closes the backend."""


@contextlib.contextmanager
def warm_workers(preload: Sequence[str]) -> Iterator[ProcessBackend]:
    """Yield one worker per core until the end of the block."""
    backend = _Warm(CORES, preload)
    try:
        yield backend
    finally:
        ProcessBackend.close(backend, 1.0)
