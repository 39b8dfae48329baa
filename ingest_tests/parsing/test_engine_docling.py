"""Docling's layout and table models, loaded and run by the real code with untrained weights."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_assets.parsing.engines import DOCLING_MODELS, LAYOUT, PageEngine, choose_engine
from ingest_assets.parsing.errors import EngineUnavailable
from ingest_assets.parsing.reader import DocumentReader
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.docling_models import write_hollow_models, write_untrained_models
from ingest_tests.parsing.documents import pdf, scan

PAGE = [
    (72, 760, 20, "Hive weights"),
    *(
        (72 + 120 * column, 700 - 24 * row, 11, f"cell {row} {column}")
        for row in range(4)
        for column in range(3)
    ),
]
DOCUMENT = pdf([PAGE, PAGE])


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory) -> Iterator[Path]:
    """A hundred mebibytes, removed after the tests."""
    folder = write_untrained_models(tmp_path_factory.mktemp("artifacts"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def options(artifacts: Path) -> ParsingOptions:
    return ParsingOptions(pdf="auto", artifacts_path=str(artifacts))


@pytest.fixture(scope="module")
def engine(options: ParsingOptions) -> PageEngine:
    return choose_engine(options, {})


@pytest.fixture(scope="module")
def docling(options: ParsingOptions, engine: PageEngine) -> DocumentReader:
    return DocumentReader(options, 2, engine)


def test_a_pdf_is_read_with_doclings_models(read: Read, docling: DocumentReader, engine: PageEngine):
    """The layout's regions and TableFormer's tables are in the document."""
    parsed = read("weights.pdf", DOCUMENT, docling)

    assert engine.name == "docling"
    assert parsed.parser == "docling/pdf-docling"
    assert parsed.pages == 2
    assert parsed.tables >= 1
    assert "Hive weights" in parsed.document


def test_the_number_of_threads_changes_nothing(
    read: Read, docling: DocumentReader, options: ParsingOptions, engine: PageEngine
):
    """Torch runs with one thread in any case."""
    import torch

    two = read("weights.pdf", DOCUMENT, docling)
    one = read("weights.pdf", DOCUMENT, DocumentReader(options, 1, engine))

    assert torch.get_num_threads() == 1
    assert one == two


def test_scans_are_read_by_the_packaged_ocr(read: Read, docling: DocumentReader, tmp_path: Path):
    """It needs no file from Docling's folder."""
    parsed = read("letter.pdf", scan(tmp_path / "letter.pdf", "The roof leaks"), docling)

    assert "roof leaks" in parsed.document.lower()


def test_pictures_are_read_with_doclings_models_too(read: Read, docling: DocumentReader, tmp_path: Path):
    """An image is a page."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (900, 400), "white")
    ImageDraw.Draw(picture).text((60, 150), "Queen found", fill="black", font_size=64)
    picture.save(tmp_path / "note.png")

    parsed = read("note.png", tmp_path / "note.png", docling)

    assert parsed.parser == "docling/image-docling"
    assert "queen found" in parsed.document.lower()


def test_other_formats_do_not_depend_on_the_engine(
    read: Read, docling: DocumentReader, reader: DocumentReader
):
    """It reads only pages."""
    page = b"<html><body><h1>Varroa</h1><p>Treat in December.</p></body></html>"

    assert read("a.html", page, docling) == read("a.html", page, reader)


def test_the_models_are_loaded_from_a_cache_as_from_a_folder(
    read: Read, docling: DocumentReader, artifacts: Path, tmp_path: Path
):
    """The hub's cache has another layout, with links instead of files."""
    for model in DOCLING_MODELS:
        repository = tmp_path / f"models--{model.folder}"
        (repository / "snapshots").mkdir(parents=True)
        (repository / "refs").mkdir()
        (repository / "refs" / model.revision).write_text("abc")
        (repository / "snapshots" / "abc").symlink_to(artifacts / model.folder)
    cached = choose_engine(ParsingOptions(), {"HF_HUB_CACHE": str(tmp_path)})

    assert cached.name == "docling"
    from_cache = DocumentReader(ParsingOptions(), 2, cached)
    assert read("weights.pdf", DOCUMENT, from_cache) == read("weights.pdf", DOCUMENT, docling)


def test_nothing_is_printed_on_standard_output(read: Read, docling: DocumentReader, capfd):
    """It is for a command's JSON; TableFormer would log there."""
    read("weights.pdf", DOCUMENT, docling)

    assert capfd.readouterr().out == ""


def test_missing_models_on_a_worker_are_an_error_of_one_line(read: Read, tmp_path: Path):
    """Another machine has another disk."""
    folder = write_hollow_models(tmp_path / "models")
    engine = choose_engine(ParsingOptions(artifacts_path=str(folder)), {})
    shutil.rmtree(folder)

    with pytest.raises(EngineUnavailable) as refusal:
        read("weights.pdf", DOCUMENT, DocumentReader(ParsingOptions(), 1, engine))

    line = str(refusal.value)
    assert line.startswith("Docling's layout model in ")
    assert "is unusable on this worker: folder not found. Put the models in a folder that" in line
    assert "\n" not in line
    assert not refusal.value.retryable


def test_a_worker_with_other_models_does_not_use_them(read: Read, tmp_path: Path):
    """Else a table would have two kinds of rows under one fingerprint."""
    folder = write_hollow_models(tmp_path / "models")
    engine = choose_engine(ParsingOptions(artifacts_path=str(folder)), {})
    write_hollow_models(folder, LAYOUT, content=b"\x01" * 8)

    with pytest.raises(EngineUnavailable, match="its version differs from the planned one"):
        read("weights.pdf", DOCUMENT, DocumentReader(ParsingOptions(), 1, engine))


def test_models_that_do_not_load_are_a_config_error(read: Read, tmp_path: Path):
    """The document is not recorded as corrupt; these files are complete but no models."""
    options = ParsingOptions(artifacts_path=str(write_hollow_models(tmp_path / "models")))

    with pytest.raises(EngineUnavailable, match="Cannot open the engine docling on this worker") as refusal:
        read("weights.pdf", DOCUMENT, DocumentReader(options, 1, choose_engine(options, {})))

    assert refusal.value.category == "config"


def test_a_worker_without_the_models_still_reads_other_formats(read: Read, tmp_path: Path):
    """Models are loaded for the first page."""
    folder = write_hollow_models(tmp_path / "models")
    engine = choose_engine(ParsingOptions(artifacts_path=str(folder)), {})
    shutil.rmtree(folder)

    assert read("a.md", b"# Swarms\n\nIn May.\n", DocumentReader(ParsingOptions(), 1, engine)).texts == 2


def test_workers_ignore_doclings_environment_variable(read: Read, tmp_path: Path, monkeypatch):
    """The plan decides; a missing folder would fail even web pages."""
    from docling.datamodel.settings import settings

    monkeypatch.setattr(settings, "artifacts_path", tmp_path / "nowhere")

    assert read("a.md", b"# Swarms\n", DocumentReader(ParsingOptions(), 1)).texts == 1


def test_the_untrained_models_have_doclings_architecture(artifacts: Path):
    """Compared by the names in the files."""
    config = json.loads((artifacts / LAYOUT.folder / "config.json").read_text())

    assert config["architectures"] == ["RTDetrV2ForObjectDetection"]
    assert len(config["id2label"]) == 17
