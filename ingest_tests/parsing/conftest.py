"""One reader for the whole room: loading Docling takes longer than all tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ingest_assets.parsing.media import media_type
from ingest_assets.parsing.reader import DocumentReader, ParsedDocument
from ingest_assets.settings.parsing import ParsingOptions

Read = Callable[..., ParsedDocument]


@pytest.fixture(scope="session")
def reader() -> DocumentReader:
    """A reader as in a worker process."""
    return DocumentReader(ParsingOptions(), threads=2)


@pytest.fixture
def read(reader: DocumentReader, tmp_path: Path) -> Read:
    """Read bytes or a file like the pipeline: the media type is detected from name and content."""

    def _read(name: str, content: bytes | Path, with_reader: DocumentReader = reader) -> ParsedDocument:
        path = content if isinstance(content, Path) else tmp_path / "content-addressed"
        if isinstance(content, bytes):
            path.write_bytes(content)
        return with_reader.read(path, name, media_type(name, path.read_bytes()[:8192]))

    return _read
