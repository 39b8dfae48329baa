"""How well documents are read: each is read as in a run, and compared with its truth."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest_assets.evaluation.scores import Scores, score
from ingest_assets.model.errors import StageError
from ingest_assets.parsing.media import DOCLING_FORMATS, media_type
from ingest_assets.parsing.parsed import ParsedDocument
from ingest_assets.runner.attempt import caught, described

if TYPE_CHECKING:
    from ingest_assets.parsing.reader import DocumentReader

STAGE = "doctags"
HEAD_BYTES = 8192
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
    """Read and compare one document after the other; a document that cannot be read costs only itself."""
    warm_up(samples, reader)
    for sample in samples:
        yield measure(sample, reader)


def warm_up(samples: Iterable[Sample], reader: "DocumentReader") -> None:
    """Read the smallest readable document of each format once: loading models is in nobody's time."""
    warm: set[str] = set()
    for sample in sorted(samples, key=lambda sample: (sample.size_bytes, sample.name)):
        if sample.kind not in warm:
            _, error = caught(partial(_read, sample, reader))
            warm |= {sample.kind} if error is None else set()


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
