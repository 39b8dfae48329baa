"""Chunks: the product against Docling's HybridChunker per document, in one process and as the stage in two.

Both sides give text, contextualized text, headings, pages, item references and tokens of every chunk. The
naive way makes a HybridChunker for each document; the tokenizer is loaded once, which favours it.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from ingest_assets.core.items import Plan, WorkItem
from ingest_assets.core.layout import Layout
from ingest_assets.core.schemas import DOCTAGS
from ingest_assets.embedders.model_files import load_tokenizer
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.chunks import resolve_options
from ingest_assets.settings.execution import StageOptions
from ingest_assets.stages.base import StageWorker
from ingest_assets.stages.chunks.fast_document import parse_document
from ingest_assets.stages.chunks.stage import ChunksStage, gc_paused
from ingest_assets.storage.parquet import Footer, write_parquet
from ingest_assets.storage.table import Parts
from ingest_tests.bench.comparing import compared
from ingest_tests.bench.documents import documents_of
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.reading import CORES, converted, warm_workers

KINDS = ("docx", "html", "md", "pdf", "pptx", "xlsx")
_MADE = ("docx", "html", "md", "pdf")
_BATCH = "bench"
# Docling's time for each pass of a quick run: one document can take longer than all others.
_QUICK_SECONDS = 2.0

Chunk = tuple[str, str, list[str], list[int], list[str], int]
Chunked = list[list[Chunk]]


def measure(size: Size) -> list[Figure]:
    """Measure how many times as fast, and how many documents have different chunks."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    stage = ChunksStage()
    with tempfile.TemporaryDirectory() as folder, warm_workers(ChunksStage.preload) as backend:
        texts, items, note = _documents(size, Path(folder), stage)
        docling, ours = _docling(stage), _ours(stage)
        documents = [_document(text) for text in texts]
        expected, seconds = _in_time([partial(docling, document) for document in documents])
        if size.scale < 1:
            selected = _within(_QUICK_SECONDS, seconds)
            texts, items, documents, expected = (
                [some[at] for at in selected] for some in (texts, items, documents, expected)
            )

        def staged() -> None:
            _run(items, Path(folder), stage, backend)

        staged()  # warms up the workers, as computing `expected` did the tokenizer
        alone = compared(
            lambda: [docling(_document(text)) for text in texts],
            lambda: [_from_json(text, ours) for text in texts],
        )
        in_memory = compared(
            lambda: [docling(document) for document in documents],
            lambda: [ours(document) for document in documents],
        )
        both = compared(lambda: [docling(_document(text)) for text in texts], staged)
        rows = [_rows(item, Path(folder), stage) for item in items]
    return [
        alone.figure("one process: ratio", ">=", 4),
        in_memory.figure("one process, document in memory: ratio", ">=", 4),
        # A few small documents are done before the work is spread over the workers.
        replace(both.figure("two processes, JSON to staged rows: ratio", ">=", 7), needs_full_size=True),
        Figure("documents", len(texts), "docs", ">=", 1, note=note),
        Figure("chunks", sum(map(len, expected)), "chunks"),
        Figure("documents with other chunks", _different(alone.ours, expected), "docs", "=", 0),
        Figure("documents with other chunks in tables", _different(rows, expected), "docs", "=", 0),
    ]


def _documents(size: Size, folder: Path, stage: ChunksStage) -> tuple[list[str], list[WorkItem], str]:
    """Return the documents with text of the corpus; else generated ones, and a note."""
    if size.corpus is not None:
        texts, items = _converted(documents_of(KINDS, size, folder), folder, stage)
        if texts:
            return texts, items, ""
    generated = documents_of(_MADE, replace(size, corpus=None), folder)
    note = f"made here: {size.corpus} has no {', '.join(KINDS)} with text" if size.corpus else ""
    return *_converted(generated, folder, stage), note


def _in_time(calls: Sequence[Callable[[], list[Chunk]]]) -> tuple[Chunked, list[float]]:
    """Return both results and their seconds."""
    results, seconds = [], []
    for call in calls:
        started = time.perf_counter()
        results.append(call())
        seconds.append(time.perf_counter() - started)
    return results, seconds


def _within(limit: float, seconds: Sequence[float]) -> list[int]:
    """Return the cheapest documents that fit into the time limit, at least one."""
    cheapest = sorted(range(len(seconds)), key=seconds.__getitem__)
    sums = accumulate(seconds[at] for at in cheapest)
    fitting = sum(spent <= limit for spent in sums)
    return sorted(cheapest[: max(1, fitting)])


def _docling(stage: ChunksStage) -> Callable[[Any], list[Chunk]]:
    from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
    from docling_core.transforms.chunker.tokenizer.huggingface import HuggingFaceTokenizer

    tokenizer = load_tokenizer(stage.tokenizer)
    counting = HuggingFaceTokenizer(tokenizer=tokenizer, max_tokens=stage.cut.max_tokens)

    def chunks(document: Any) -> list[Chunk]:
        chunker = HybridChunker(tokenizer=counting)
        described = []
        for chunk in chunker.chunk(document):
            contextualized = chunker.contextualize(chunk)
            tokens = counting.count_tokens(contextualized)
            described.append(
                _described(chunk.text, contextualized, chunk.meta.headings, chunk.meta.doc_items, tokens)
            )
        return described

    return chunks


def _ours(stage: ChunksStage) -> Callable[[Any], list[Chunk]]:
    from ingest_assets.stages.chunks.cutter import Cutter

    cutter = Cutter(load_tokenizer(stage.tokenizer), resolve_options(stage.options, stage.cut.max_tokens))

    def chunks(document: Any) -> list[Chunk]:
        described = []
        for piece in cutter.pieces(document)[0]:
            contextualized = piece.contextualized
            tokens = cutter.count(contextualized)
            described.append(_described(piece.text, contextualized, piece.headings, piece.items, tokens))
        return described

    return chunks


def _described(text: str, contextualized: str, headings: Any, items: Sequence[Any], tokens: int) -> Chunk:
    pages = sorted({origin.page_no for item in items for origin in item.prov})
    return text, contextualized, list(headings or ()), pages, [item.self_ref for item in items], tokens


def _document(text: str) -> Any:
    from docling_core.types.doc import DoclingDocument

    return DoclingDocument.model_validate_json(text)


def _converted(paths: Sequence[Path], home: Path, stage: ChunksStage) -> tuple[list[str], list[WorkItem]]:
    """Convert the documents that can be read and have text; return their JSON and the stage's items."""
    parts = converted(paths)
    table = home / "doctags.parquet"
    write_parquet(table, DOCTAGS, parts, Footer("1", "c", {}).as_metadata())
    staged = Parts(Layout(home), stage.spec, _BATCH)
    items = [
        WorkItem(
            part["doc_id"][0].as_py(),
            "f",
            input_paths=(str(table),),
            output_paths=(str(staged.path(part["doc_id"][0].as_py())),),
            meta={"row": number},
            cost_hint=part["chars"][0].as_py(),
        )
        for number, part in enumerate(parts)
    ]
    return [part["document"][0].as_py() for part in parts], items


def _run(items: Sequence[WorkItem], home: Path, stage: ChunksStage, backend: Any) -> None:
    plan = Plan(stage.name, items, len(items))
    outcome = run_stage(RunSpec(plan, StageWorker(stage, str(home), _BATCH), StageOptions(), backend=backend))
    assert outcome.succeeded == len(items), outcome.errors


def _from_json(text: str, ours: Callable[[Any], list[Chunk]]) -> list[Chunk]:
    """Load a document like the stage."""
    with gc_paused():
        return ours(parse_document(text))


def _rows(item: WorkItem, home: Path, stage: ChunksStage) -> list[Chunk]:
    names = ("text", "contextualized", "headings", "pages", "item_refs", "tokens")
    rows = Parts(Layout(home), stage.spec, _BATCH).read(item.item_id).select(names).to_pylist()
    return [tuple(row[name] for name in names) for row in rows]


def _different(found: Chunked, wanted: Chunked) -> int:
    """Count differences. Docling makes no chunk of documents with headings only; the product does."""
    return sum(mine != other for mine, other in zip(found, wanted, strict=True) if other)
