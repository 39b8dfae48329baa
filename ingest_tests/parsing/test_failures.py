"""What cannot be read ends with its own code, and the codes are a contract."""

import pickle
import re
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

import ingest_assets
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
    """A presentation of which one part is damaged behind its beginning."""
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
def test_a_bad_file_ends_with_its_own_code(read: Read, name: str, content: bytes, code: str) -> None:
    """One clear line, an `input` error, never retried."""
    with pytest.raises(errors.ParseError) as caught:
        read(name, content)
    assert (caught.value.code, caught.value.category, caught.value.retryable) == (code, "input", False)
    assert "\n" not in str(caught.value)
    assert "content-addressed" not in str(caught.value)


def test_a_pdf_that_only_its_owner_may_change_is_read(read: Read) -> None:
    """Encrypted with an empty user password: every viewer opens it."""
    assert "Bees and trees" in read("owned.pdf", documents.pdf([PAGE], password="")).doctags


def test_a_file_above_the_size_limit_is_refused_unread(read: Read) -> None:
    """The message names the size, the limit and the setting."""
    small = DocumentReader(ParsingOptions(max_mebibytes=1), threads=1)
    with pytest.raises(errors.DocumentTooLarge, match=r"1048577 bytes.*1 MiB.*parsing\.max_mebibytes"):
        read("large.txt", b"x" * (1024 * 1024 + 1), small)


def test_a_pdf_above_the_page_limit_is_refused(read: Read) -> None:
    """Before any page is parsed."""
    short = DocumentReader(ParsingOptions(max_pages=2), threads=1)
    with pytest.raises(errors.TooManyPages, match=r"3 pages.*2 allowed.*parsing\.max_pages") as caught:
        read("long.pdf", documents.pdf([PAGE] * 3), short)
    assert caught.value.code == "E_SECURITY_TOO_MANY_PAGES"


def test_a_file_that_vanished_says_so(reader: DocumentReader, tmp_path: Path) -> None:
    """Between the scan and the read anything may happen."""
    with pytest.raises(DocumentMissing):
        reader.read(tmp_path / "gone.md", "gone.md", "text/markdown")


def test_a_bad_file_does_not_spoil_the_next(read: Read) -> None:
    """The reader stays warm over failures."""
    with pytest.raises(errors.CorruptDocument):
        read("short.pdf", documents.pdf([PAGE])[:200])
    assert "Bees and trees" in read("good.pdf", documents.pdf([PAGE])).doctags


@pytest.mark.parametrize("kind", errors.ParseError.__subclasses__())
def test_errors_survive_the_way_out_of_a_worker(kind: type[ItemError]) -> None:
    """An exception that does not unpickle kills a process pool."""
    copy = pickle.loads(pickle.dumps(kind("The file is empty.", detail={"bytes": 0})))
    assert (type(copy), str(copy), copy.detail) == (kind, "The file is empty.", {"bytes": 0})


# Codes are a contract: what the product raises and warns of is what the README lists.

PROJECT = Path(ingest_assets.__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
SOURCES = "".join(
    path.read_text(encoding="utf-8") for path in sorted((PROJECT / "ingest_assets").rglob("*.py"))
)


def test_every_code_of_a_refusal_is_explained() -> None:
    """People look for a code before they look for a word."""
    codes = {kind.code for kind in errors.ParseError.__subclasses__()}

    assert {code for code in codes if f"`{code}`" not in README} == set()


def test_every_code_that_is_explained_exists() -> None:
    """And so does every warning, in both places."""
    section = README.split("## What is refused")[1].split("\n## ")[0]

    assert {code for code in re.findall(r"\bE_[A-Z_]+", section) if f'"{code}"' not in SOURCES} == set()
    assert set(re.findall(r"W_[A-Z_]+", section)) == set(re.findall(r"\bW_[A-Z_]+", SOURCES))


def test_the_issue_has_its_codes() -> None:
    """Those that were asked for."""
    asked = {
        *(
            f"E_SECURITY_{name}"
            for name in ("INVALID_PDF", "DECOMPRESSION_BOMB", "TOO_LARGE", "TOO_MANY_PAGES")
        ),
        *(f"E_PARSE_{name}" for name in ("CORRUPT", "PASSWORD", "EMPTY", "GARBLED", "UNSUPPORTED")),
        *(f"E_OCR_{name}" for name in ("ENGINE_UNAVAILABLE", "TIMEOUT", "FAILED")),
    }

    assert {kind.code for kind in errors.ParseError.__subclasses__()} == asked


# OCR that is missing, too slow or fails has codes of its own.


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
