"""OCR that is missing, too slow or fails has codes of its own."""

from pathlib import Path

import pytest

from ingest_assets.parsing import pipelines as pages
from ingest_assets.parsing.errors import OcrFailed, OcrTimeout, OcrUnavailable
from ingest_assets.parsing.libraries import OcrClock
from ingest_assets.parsing.reader import DocumentReader
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.parsing import documents
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.hostile import images


def test_a_document_whose_ocr_takes_too_long_fails_as_a_whole(read: Read, tmp_path: Path) -> None:
    """Half of it would be another half on another day."""
    hasty = DocumentReader(ParsingOptions(ocr_timeout_seconds=0.001), threads=1)
    with pytest.raises(OcrTimeout, match=r"0\.001 s.*parsing\.ocr_timeout_seconds") as caught:
        read("scan.pdf", documents.scan(tmp_path / "a.pdf", "Honey bees"), hasty)
    assert (caught.value.code, caught.value.category) == ("E_OCR_TIMEOUT", "timeout")


def test_a_document_that_needs_no_ocr_has_all_its_time(read: Read) -> None:
    """The clock runs only while pictures are read."""
    hasty = DocumentReader(ParsingOptions(ocr_timeout_seconds=60), threads=1)
    assert "Bees" in read("a.pdf", documents.pdf([[(72, 700, 12, "Bees and trees")]]), hasty).doctags


def test_the_clock_starts_anew_with_each_document() -> None:
    """What one spent the next has."""
    clock = OcrClock()
    clock.restart(0)
    with clock.running():
        pass
    with pytest.raises(OcrTimeout):
        clock.check()
    clock.restart(60)
    with clock.running():
        clock.check()


def test_a_picture_that_ocr_cannot_take_says_so(read: Read) -> None:
    """Sixty thousand pixels wide and ten high: within the limits, and no page."""
    with pytest.raises(OcrFailed) as caught:
        read("strip.png", images.png(60_000, 10))
    assert (caught.value.code, caught.value.category) == ("E_OCR_FAILED", "input")


def test_without_its_models_ocr_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the worker, not of a document."""
    monkeypatch.setattr(pages, "_OCR_MODELS", ("missing.onnx",) * 3)
    with pytest.raises(OcrUnavailable, match=r"missing\.onnx") as caught:
        pages.ocr_models()
    assert (caught.value.code, caught.value.category) == ("E_OCR_ENGINE_UNAVAILABLE", "config")
