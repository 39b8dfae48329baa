"""How well documents are read: each is read as in a run, and compared with its truth."""

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
from ingest_assets.runner.attempt import caught, described
from ingest_assets.settings.parsing import ParsingOptions

if TYPE_CHECKING:
    from ingest_assets.parsing.reader import DocumentReader

STAGE = "doctags"
MARKDOWN = (".md", ".markdown")
_NOT_DECODED = "<!-- formula-not-decoded -->"


@dataclass(frozen=True, slots=True)
class Sample:
    """A document to read, and where its truth is, if there is one."""

    name: str  # relative, below the folder of documents
    path: Path
    truth: Path | None
    mime: str
    size_bytes: int

    @property
    def kind(self) -> str:
        """The format's name, as Docling has it; a format that is not read goes by its media type."""
        return DOCLING_FORMATS.get(self.mime, self.mime)


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of one document: an error, or how long it took and, where there is a truth, its scores."""

    sample: Sample
    seconds: float
    pages: int = 0
    chars: int = 0  # that can become chunks
    parser: str = ""
    warnings: tuple[str, ...] = ()
    scores: Scores | None = None
    error: StageError | None = None

    def as_dict(self) -> dict[str, Any]:
        """One document's part of the report."""
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
    """The document at a path; its format comes from its name and first bytes, as at intake."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            size_bytes = os.fstat(stream.fileno()).st_size
    except OSError:  # said of this document when it is its turn
        head, size_bytes = b"", 0
    return Sample(name, path, truth, media_type(path.name, head), size_bytes)


def measure_all(samples: Sequence[Sample], reader: "DocumentReader") -> Iterator[Measured]:
    """Read and compare one document after the other; a document that cannot be read costs only itself.

    The smallest readable document of each format is read once before: loading models is in nobody's time.
    """
    warm: set[str] = set()
    for sample in sorted(samples, key=lambda sample: (sample.size_bytes, sample.name)):
        if sample.kind not in warm:
            _, error = caught(partial(_read, sample, reader))
            warm |= {sample.kind} if error is None else set()
    for sample in samples:
        yield measure(sample, reader)


def measure(sample: Sample, reader: "DocumentReader") -> Measured:
    """Read one document with a warm reader and compare it with its truth. Only the reading is timed."""
    started = time.perf_counter()
    parsed, error = caught(partial(_read, sample, reader))
    seconds = time.perf_counter() - started
    if parsed is None:
        failure = described(error or RuntimeError("no result"), stage=STAGE, item_id=sample.name)
        return Measured(sample, seconds, error=failure)
    scores = None
    if sample.truth is not None:
        truth = sample.truth.read_text(encoding="utf-8", errors="replace")
        scores = score(markdown_of(parsed, like=truth), truth)
    return Measured(
        sample, seconds, parsed.pages, parsed.chars, parsed.parser, parsed.warnings, scores=scores
    )


def _read(sample: Sample, reader: "DocumentReader") -> ParsedDocument:
    return reader.read(sample.path, sample.path.name, sample.mime)


def markdown_of(parsed: ParsedDocument, *, like: str) -> str:
    """The document as Docling's own Markdown, which is what a truth is made with.

    Where the truth holds places of formulas without their text, ours does too: the characters of a formula
    that nobody decoded, which this product keeps for search, are neither right nor wrong. And the rows of a
    table's heading stay rows: only later versions of Docling write them as one.
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
    """The truth of the document at `relative` below `documents`: `<file>.md`, else `<stem>.md`.

    It is looked for at the same place below `truth`; also when one of the two folders is that of a single
    kind and the other one is the folder above. A Markdown document without one is its own truth.
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


def report_object(measured: Sequence[Measured]) -> dict[str, Any]:
    """The whole report: each document, each format, and all together."""
    kinds = sorted({one.sample.kind for one in measured})
    return {
        "documents": [one.as_dict() for one in measured],
        "by_kind": {kind: totals([one for one in measured if one.sample.kind == kind]) for kind in kinds},
        "total": totals(measured),
    }


def totals(measured: Sequence[Measured]) -> dict[str, Any]:
    """Means over the scored documents that have such a figure; `pooled` counts all their parts as one."""
    read = [one for one in measured if one.error is None]
    scores = [one.scores for one in read if one.scores is not None]
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


def speed(read: Sequence[Measured]) -> dict[str, float | int | None]:
    """Pages a second over the documents that have pages, documents a second over all; one reader, warm."""
    paged = [one for one in read if one.pages]
    seconds, paged_seconds = sum(one.seconds for one in read), sum(one.seconds for one in paged)
    pages = sum(one.pages for one in paged)
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
        "wanted": agreement.wanted,
        "found": agreement.found,
    }


def samples_in(documents: Path, truth: Path, warn: Callable[[str], None]) -> list[Sample]:
    """The documents with their truths; refuses where nothing could be compared."""
    samples = []
    documents, truth = require_folder(documents), require_folder(truth)
    for seen in walk(documents, Exclusions()):
        if isinstance(seen, Problem):
            warn(f"ingest: {documents / seen.path}: {seen.reason}.")
        else:
            found = find_truth(PurePosixPath(seen.path), documents, truth)
            samples.append(sample_of(seen.path, documents / seen.path, found))
    if not samples:
        raise ConfigError(f"{documents}: no document is here; give a folder with documents.")
    if all(sample.truth is None for sample in samples):
        name = samples[0].name
        raise ConfigError(
            f"{truth}: holds the truth of none of the {len(samples)} documents in {documents}; "
            f"that of {name} would be {name}.md."
        )
    return samples


def threads() -> int:
    return len(os.sched_getaffinity(0))


def circumstances(
    documents: Path, truth: Path, options: ParsingOptions, engine: PageEngine
) -> dict[str, Any]:
    return {
        "folder": str(documents),
        "truth": str(truth),
        "engine": engine.name,
        "parsing": options.model_dump(mode="json"),
        "threads": threads(),
        "libraries": library_versions(),
    }


def engine_of(options: ParsingOptions) -> PageEngine:
    """The engine that a run with these options would use."""
    return choose_engine(options)


def read_and_measure(
    samples: Sequence[Sample], options: ParsingOptions, engine: PageEngine
) -> Iterator[Measured]:
    """Read each sample as a run would, and measure it."""
    from ingest_assets.parsing.reader import DocumentReader

    yield from measure_all(samples, DocumentReader(options, threads(), engine))
