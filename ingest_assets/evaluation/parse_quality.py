"""Parse quality: read each document as a run does, and compare it with its truth."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ingest_assets.core.errors import ConfigError, StageError
from ingest_assets.evaluation.scores import Agreement, Scores, pooled, rounded, score
from ingest_assets.intake.folders.walk import Exclusions, Problem, require_folder, walk
from ingest_assets.parsing.engines import PageEngine, choose_engine
from ingest_assets.parsing.libraries import library_versions
from ingest_assets.parsing.media import DOCLING_FORMATS, HEAD_BYTES, media_type
from ingest_assets.parsing.reader import ParsedDocument
from ingest_assets.runner.attempt import caught, error_record
from ingest_assets.settings.parsing import ParsingOptions

if TYPE_CHECKING:
    from ingest_assets.parsing.reader import DocumentReader

STAGE = "doctags"
MARKDOWN = (".md", ".markdown")
_NOT_DECODED = "<!-- formula-not-decoded -->"


@dataclass(frozen=True, slots=True)
class Sample:
    """A document to read, and the path of its truth, if it has one."""

    name: str  # relative to the folder of documents
    path: Path
    truth: Path | None
    mime: str
    size_bytes: int

    @property
    def kind(self) -> str:
        """Docling's name of the format, or the media type if Docling does not read it."""
        return DOCLING_FORMATS.get(self.mime, self.mime)


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """An error, or the time to read the document and, if it has a truth, its scores."""

    sample: Sample
    seconds: float
    pages: int = 0
    chars: int = 0  # that can become chunks
    parser: str = ""
    warnings: tuple[str, ...] = ()
    scores: Scores | None = None
    error: StageError | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the document's entry in the report."""
        error = self.error
        return {
            "document": self.sample.name,
            "kind": self.sample.kind,
            "status": "failed" if error else "scored" if self.scores else "read",
            "error": {"code": error.code, "message": error.message} if error else None,
            "parser": self.parser or None,
            "pages": self.pages,
            "chars": self.chars,
            "seconds": round(self.seconds, 4),
            "warnings": list(self.warnings),
            "scores": self.scores.as_dict() if self.scores else None,
        }


def sample_of(name: str, path: Path, truth: Path | None) -> Sample:
    """Return the document at a path; its name and first bytes decide its format, as at intake."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            size_bytes = os.fstat(stream.fileno()).st_size
    except OSError:  # reading the document reports it
        head, size_bytes = b"", 0
    return Sample(name, path, truth, media_type(path.name, head), size_bytes)


def measure_all(samples: Sequence[Sample], reader: "DocumentReader") -> Iterator[DocumentResult]:
    """Read and compare documents one by one; an unreadable document does not stop the others.

    The smallest readable document of each format is read once before, so that times exclude loading models.
    """
    warm: set[str] = set()
    for sample in sorted(samples, key=lambda sample: (sample.size_bytes, sample.name)):
        if sample.kind not in warm:
            _, error = caught(partial(_read, sample, reader))
            warm |= {sample.kind} if error is None else set()
    for sample in samples:
        yield measure(sample, reader)


def measure(sample: Sample, reader: "DocumentReader") -> DocumentResult:
    """Read one document with a warm reader and compare it with its truth. Time only the reading."""
    started = time.perf_counter()
    parsed, error = caught(partial(_read, sample, reader))
    seconds = time.perf_counter() - started
    if parsed is None:
        failure = error_record(error or RuntimeError("no result"), stage=STAGE, item_id=sample.name)
        return DocumentResult(sample, seconds, error=failure)
    scores = None
    if sample.truth is not None:
        truth = sample.truth.read_text(encoding="utf-8", errors="replace")
        scores = score(markdown_of(parsed, like=truth), truth)
    return DocumentResult(
        sample, seconds, parsed.pages, parsed.chars, parsed.parser, parsed.warnings, scores=scores
    )


def _read(sample: Sample, reader: "DocumentReader") -> ParsedDocument:
    return reader.read(sample.path, sample.path.name, sample.mime)


def markdown_of(parsed: ParsedDocument, *, like: str) -> str:
    """Return the document as Docling's Markdown, the format of the truths.

    Formulas are left out where the truth has placeholders: their raw characters, which the product keeps for
    search, are neither right nor wrong. Header rows stay separate; only later versions of Docling merge them.
    """
    from docling_core.types.doc import DoclingDocument

    document = DoclingDocument.model_validate_json(parsed.document)
    if _NOT_DECODED in like:
        for item in document.texts:
            if item.label.value == "formula":
                item.text = ""
    for table in document.tables:
        for cell in table.data.table_cells:
            cell.column_header = False
    return str(document.export_to_markdown(compact_tables=True))


def find_truth(relative: PurePosixPath, documents: Path, truth: Path) -> Path | None:
    """Return the truth of the document at `relative` below `documents`: `<file>.md`, else `<stem>.md`.

    It is searched at the same place below `truth`, also if one of the two folders is a format's subfolder and
    the other is not. A Markdown document without a truth is its own truth.
    """
    parents = relative.parent.parts
    folders = [truth.joinpath(*parents), truth.joinpath(documents.name, *parents)]
    if parents[:1] == (truth.name,):
        folders.append(truth.joinpath(*parents[1:]))
    for folder in folders:
        for name in (f"{relative.name}.md", f"{relative.stem}.md"):
            if (folder / name).is_file():
                return folder / name
    return documents / relative if relative.suffix.lower() in MARKDOWN else None


def report_object(measured: Sequence[DocumentResult]) -> dict[str, Any]:
    """Return the report: each document, each format, and the total."""
    kinds = sorted({result.sample.kind for result in measured})
    return {
        "documents": [result.as_dict() for result in measured],
        "by_kind": {kind: totals([item for item in measured if item.sample.kind == kind]) for kind in kinds},
        "total": totals(measured),
    }


def totals(measured: Sequence[DocumentResult]) -> dict[str, Any]:
    """Return means over the scored documents that have the figure; `pooled` sums their counts first."""
    read = [result for result in measured if result.error is None]
    scores = [result.scores for result in read if result.scores is not None]
    headings, cells = pooled(s.headings for s in scores), pooled(s.cells for s in scores)
    return {
        "documents": len(measured),
        "read": len(read),
        "failed": len(measured) - len(read),
        "scored": len(scores),
        "word_ratio": _mean(scores, lambda s: s.word_ratio),
        "heading_recall": _mean(scores, lambda s: s.headings.recall),
        "heading_precision": _mean(scores, lambda s: s.headings.precision),
        "heading_f1": _mean(scores, lambda s: s.headings.f1),
        "heading_levels": _mean(scores, lambda s: s.heading_levels),
        "table_cell_f1": _mean(scores, lambda s: s.cells.f1),
        "table_content_f1": _mean(scores, lambda s: s.cell_contents.f1),
        "order": _mean(scores, lambda s: s.order),
        "pooled": {"headings": _shares(headings), "table_cells": _shares(cells)},
        **speed(read),
    }


def speed(read: Sequence[DocumentResult]) -> dict[str, float | int | None]:
    """Return pages per second (of documents with pages) and documents per second with one warm reader."""
    paged = [result for result in read if result.pages]
    seconds, paged_seconds = sum(result.seconds for result in read), sum(result.seconds for result in paged)
    pages = sum(result.pages for result in paged)
    return {
        "pages": pages,
        "seconds": round(seconds, 4),
        "pages_per_s": round(pages / paged_seconds, 3) if paged_seconds else None,
        "documents_per_s": round(len(read) / seconds, 3) if seconds else None,
    }


def _mean(scores: Sequence[Scores], figure: Callable[[Scores], float | None]) -> float | None:
    values = [value for value in map(figure, scores) if value is not None]
    return rounded(sum(values) / len(values)) if values else None


def _shares(agreement: Agreement) -> dict[str, float | int | None]:
    return {
        "recall": rounded(agreement.recall),
        "precision": rounded(agreement.precision),
        "f1": rounded(agreement.f1),
        "matched": agreement.matched,
        "wanted": agreement.expected,
        "found": agreement.parsed,
    }


def find_samples(documents: Path, truth: Path, warn: Callable[[str], None]) -> list[Sample]:
    """Return the documents with their truths. Raise `ConfigError` if there is nothing to compare."""
    samples = []
    documents, truth = require_folder(documents), require_folder(truth)
    for entry in walk(documents, Exclusions()):
        if isinstance(entry, Problem):
            warn(f"ingest: {documents / entry.path}: {entry.reason}.")
        else:
            truth_file = find_truth(PurePosixPath(entry.path), documents, truth)
            samples.append(sample_of(entry.path, documents / entry.path, truth_file))
    if not samples:
        raise ConfigError(f"{documents} has no documents. Set a folder with documents.")
    if all(sample.truth is None for sample in samples):
        name = samples[0].name
        raise ConfigError(
            f"{truth} has no truth for any of the {len(samples)} documents in {documents}. "
            f"The truth of {name} is named {name}.md."
        )
    return samples


def threads() -> int:
    """Return the number of CPUs that this process can use."""
    return len(os.sched_getaffinity(0))


def describe_environment(
    documents: Path, truth: Path, options: ParsingOptions, engine: PageEngine
) -> dict[str, Any]:
    """Return the report's facts about the folders, settings and library versions."""
    return {
        "folder": str(documents),
        "truth": str(truth),
        "engine": engine.name,
        "parsing": options.model_dump(mode="json"),
        "threads": threads(),
        "libraries": library_versions(),
    }


def resolve_engine(options: ParsingOptions) -> PageEngine:
    """Return the engine that a run with these options would use."""
    return choose_engine(options)


def read_and_measure(
    samples: Sequence[Sample], options: ParsingOptions, engine: PageEngine
) -> Iterator[DocumentResult]:
    """Read each sample as a run does, and measure it."""
    from ingest_assets.parsing.reader import DocumentReader

    yield from measure_all(samples, DocumentReader(options, threads(), engine))
