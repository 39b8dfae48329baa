"""Docling's pipeline without models: the text layer in file order."""

from pathlib import Path

import pytest

from ingest_assets.parsing.engines import choose_engine
from ingest_assets.parsing.pipelines import open_embedded, open_native
from ingest_assets.parsing.reader import DocumentReader
from ingest_assets.parsing.vlm import open_vlm
from ingest_assets.settings.parsing import ParsingOptions, VlmOptions
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.documents import pdf

OPTIONS = ParsingOptions(pdf="native")


@pytest.fixture(scope="module")
def native() -> DocumentReader:
    return DocumentReader(OPTIONS, 2, choose_engine(OPTIONS, {}))


def test_every_line_of_a_pdf_is_a_text(read: Read, native: DocumentReader):
    """There are no headings."""
    pages = [[(72, 760, 20, f"Page {number}"), (72, 700, 11, "It rained.")] for number in (1, 2, 3)]

    parsed = read("rain.pdf", pdf(pages), native)

    assert parsed.parser == "docling/pdf-native"
    assert (parsed.pages, parsed.texts, parsed.tables) == (3, 6, 0)
    assert parsed.doctags.index("Page 1") < parsed.doctags.index("Page 2") < parsed.doctags.index("Page 3")


def test_the_number_of_threads_changes_nothing(read: Read, native: DocumentReader):
    """Threads may finish pages in any order."""
    document = pdf([[(72, 760, 12, f"Page {number}")] for number in range(20)])
    one = DocumentReader(OPTIONS, 1, choose_engine(OPTIONS, {}))

    assert read("rain.pdf", document, native) == read("rain.pdf", document, one)


def test_images_are_read_by_the_embedded_engine(
    read: Read, native: DocumentReader, reader: DocumentReader, tmp_path: Path
):
    """The parser's name shows it."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (900, 400), "white")
    ImageDraw.Draw(picture).text((60, 150), "Queen found", fill="black", font_size=64)
    picture.save(tmp_path / "note.png")

    parsed = read("note.png", tmp_path / "note.png", native)

    assert parsed.parser == "docling/image-embedded"
    assert parsed == read("note.png", tmp_path / "note.png", reader)


def test_remote_services_are_enabled_only_for_a_vision_model():
    """By Docling's own option."""
    local = (open_embedded(True, 1), open_native(1))

    assert not any(pipeline.pipeline_options.enable_remote_services for pipeline in local)
    assert open_vlm(VlmOptions(url="http://127.0.0.1:1", model="m")).pipeline_options.enable_remote_services
