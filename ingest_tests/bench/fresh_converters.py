"""One warm reader against a new Docling converter for each document, with the same PDF engine."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ingest_assets.parsing.media import media_type
from ingest_assets.parsing.reader import DocumentReader
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.bench.comparing import compared
from ingest_tests.bench.documents import mixed_documents
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.reading import CORES, docling_converter, docling_loop

DOCUMENTS = 10  # the last of them a PDF


def measure(size: Size) -> list[Figure]:
    """Measure how many times as fast on documents in sequence, and how many are read differently."""
    with tempfile.TemporaryDirectory() as folder:
        made = mixed_documents(Path(folder) / "documents", 50, lengths=(1,))
        paths = made[-size.of(DOCUMENTS) :]
        reader = DocumentReader(ParsingOptions(), CORES)
        _fresh(paths[-1:])  # imports before timing
        _warm(reader, paths[-1:])
        found = compared(lambda: _fresh(paths), lambda: _warm(reader, paths))
    different = sum(mine != other for mine, other in zip(found.ours, found.naive, strict=True))
    return [
        found.figure(f"{len(paths)} documents: ratio", ">=", 2),
        Figure("documents with other doctags", different, "docs", "=", 0),
    ]


def _fresh(paths: Sequence[Path]) -> list[str]:
    return [text for path in paths for text in docling_loop(docling_converter(), [path])]


def _warm(reader: DocumentReader, paths: Sequence[Path]) -> list[str]:
    return [reader.read(path, path.name, media_type(path.name, path.read_bytes())).doctags for path in paths]
