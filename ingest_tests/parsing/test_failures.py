"""Each kind of failure has its own error code."""

import pickle
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from ingest_assets.core.errors import DocumentMissing, ItemError
from ingest_assets.parsing import errors
from ingest_assets.parsing import pipelines as pages
from ingest_assets.parsing.errors import OcrFailed, OcrTimeout, OcrUnavailable
from ingest_assets.parsing.libraries import OcrClock
from ingest_assets.parsing.reader import DocumentReader
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.parsing import documents
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.hostile import images

PAGE = [(72, 700, 12, "Bees and trees")]
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


def _archive(**members: str) -> bytes:
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        for name, content in members.items():
            target.writestr(name, content)
    return archive.getvalue()


def _with_wrong_checksum(member: str) -> bytes:
    """A presentation with a part that is damaged after its beginning."""
    content = bytearray(_archive(**{"ppt/presentation.xml": "<x/>", member: "<x>" + "y" * 99_000}))
    content[content.index(b"y" * 99) + 90_000] ^= 1
    return bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("checksum.pptx", _with_wrong_checksum("[Content_Types].xml"), "E_PARSE_CORRUPT"),
        ("checksum.docx", _with_wrong_checksum("META-INF/manifest.xml"), "E_PARSE_CORRUPT"),
        ("locked.pdf", documents.pdf([PAGE], password="secret"), "E_PARSE_PASSWORD"),
        ("locked.docx", OLE + "EncryptedPackage".encode("utf-16-le"), "E_PARSE_PASSWORD"),
        ("short.pdf", documents.pdf([PAGE])[:200], "E_PARSE_CORRUPT"),
        ("lies.pdf", b"This is not a PDF.", "E_SECURITY_INVALID_PDF"),
        ("lies.docx", b"This is not a Word file.", "E_PARSE_CORRUPT"),
        ("broken.docx", _archive(**{"word/document.xml": "<w:document"}), "E_PARSE_CORRUPT"),
        ("broken.xlsx", _archive(**{"xl/workbook.xml": "<x"}), "E_PARSE_CORRUPT"),
        ("broken.pptx", _archive(**{"ppt/presentation.xml": "<x"}), "E_PARSE_CORRUPT"),
        ("broken.png", b"\x89PNG\r\n\x1a\n" + bytes(40), "E_PARSE_CORRUPT"),
        ("nothing.md", b"", "E_PARSE_EMPTY"),
        ("old.doc", OLE, "E_PARSE_UNSUPPORTED"),
        ("program.xyz", b"\x7fELF\x00", "E_PARSE_UNSUPPORTED"),
        ("some.zip", _archive(**{"a.txt": "x"}), "E_PARSE_UNSUPPORTED"),
    ],
)
def test_each_kind_of_bad_file_has_its_code(read: Read, name: str, content: bytes, code: str) -> None:
    """An `input` error of one line, never retried."""
    with pytest.raises(errors.ParseError) as caught:
        read(name, content)
    assert (caught.value.code, caught.value.category, caught.value.retryable) == (code, "input", False)
    assert "\n" not in str(caught.value)
    assert "content-addressed" not in str(caught.value)


def test_a_pdf_with_an_owner_password_is_read(read: Read) -> None:
    """Encrypted with an empty user password: every viewer opens it."""
    assert "Bees and trees" in read("owned.pdf", documents.pdf([PAGE], password="")).doctags


def test_a_file_above_the_size_limit_is_refused(read: Read) -> None:
    """The message names the size, the limit and the setting."""
    small = DocumentReader(ParsingOptions(max_mebibytes=1), threads=1)
    with pytest.raises(errors.DocumentTooLarge, match=r"1048577 bytes.*1 MiB.*parsing\.max_mebibytes"):
        read("large.txt", b"x" * (1024 * 1024 + 1), small)


def test_a_pdf_above_the_page_limit_is_refused(read: Read) -> None:
    """Before any page is parsed."""
    short = DocumentReader(ParsingOptions(max_pages=2), threads=1)
    with pytest.raises(errors.TooManyPages, match=r"pages: 3 \(limit 2\).*parsing\.max_pages") as caught:
        read("long.pdf", documents.pdf([PAGE] * 3), short)
    assert caught.value.code == "E_SECURITY_TOO_MANY_PAGES"


def test_a_missing_file_is_an_error(reader: DocumentReader, tmp_path: Path) -> None:
    """It may be removed between scan and read."""
    with pytest.raises(DocumentMissing):
        reader.read(tmp_path / "gone.md", "gone.md", "text/markdown")


def test_the_reader_is_usable_after_a_bad_file(read: Read) -> None:
    """It is reused after failures."""
    with pytest.raises(errors.CorruptDocument):
        read("short.pdf", documents.pdf([PAGE])[:200])
    assert "Bees and trees" in read("good.pdf", documents.pdf([PAGE])).doctags


@pytest.mark.parametrize("kind", errors.ParseError.__subclasses__())
def test_errors_survive_pickling(kind: type[ItemError]) -> None:
    """An exception that does not unpickle kills a process pool."""
    copy = pickle.loads(pickle.dumps(kind("The file is empty.", detail={"bytes": 0})))
    assert (type(copy), str(copy), copy.detail) == (kind, "The file is empty.", {"bytes": 0})


def test_the_codes_are_stable() -> None:
    """Users search for them."""
    codes = {
        *(
            f"E_SECURITY_{name}"
            for name in ("INVALID_PDF", "DECOMPRESSION_BOMB", "TOO_LARGE", "TOO_MANY_PAGES")
        ),
        *(f"E_PARSE_{name}" for name in ("CORRUPT", "PASSWORD", "EMPTY", "GARBLED", "UNSUPPORTED")),
        *(f"E_OCR_{name}" for name in ("ENGINE_UNAVAILABLE", "TIMEOUT", "FAILED")),
    }

    assert {kind.code for kind in errors.ParseError.__subclasses__()} == codes


# OCR that is missing, too slow or fails.


def test_an_ocr_timeout_fails_the_whole_document(read: Read, tmp_path: Path) -> None:
    """Which pages are read in time would vary."""
    hasty = DocumentReader(ParsingOptions(ocr_timeout_seconds=0.001), threads=1)
    with pytest.raises(OcrTimeout, match=r"0\.001 s.*parsing\.ocr_timeout_seconds") as caught:
        read("scan.pdf", documents.scan(tmp_path / "a.pdf", "Honey bees"), hasty)
    assert (caught.value.code, caught.value.category) == ("E_OCR_TIMEOUT", "timeout")


def test_a_document_without_ocr_has_no_ocr_timeout(read: Read) -> None:
    """The clock runs only during OCR."""
    hasty = DocumentReader(ParsingOptions(ocr_timeout_seconds=60), threads=1)
    assert "Bees" in read("a.pdf", documents.pdf([[(72, 700, 12, "Bees and trees")]]), hasty).doctags


def test_the_clock_restarts_for_each_document() -> None:
    """A timeout does not affect the next document."""
    clock = OcrClock()
    clock.restart(0)
    with clock.running():
        pass
    with pytest.raises(OcrTimeout):
        clock.check()
    clock.restart(60)
    with clock.running():
        clock.check()


def test_an_image_that_ocr_cannot_read_is_an_error(read: Read) -> None:
    """60,000 pixels wide and ten high: within the limits, but no page."""
    with pytest.raises(OcrFailed) as caught:
        read("strip.png", images.png(60_000, 10))
    assert (caught.value.code, caught.value.category) == ("E_OCR_FAILED", "input")


def test_without_its_models_ocr_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the worker, not of a document."""
    monkeypatch.setattr(pages, "_OCR_MODELS", ("missing.onnx",) * 3)
    with pytest.raises(OcrUnavailable, match=r"missing\.onnx") as caught:
        pages.ocr_models()
    assert (caught.value.code, caught.value.category) == ("E_OCR_ENGINE_UNAVAILABLE", "config")
