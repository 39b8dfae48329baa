import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from ingest_assets.parsing import media
from ingest_assets.parsing.media import media_type
from ingest_tests.parsing import documents


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("report.txt", b"%PDF-1.7\n", media.PDF),
        ("page.md", b"\xef\xbb\xbf\n<!DOCTYPE html><html>", "text/html"),
        ("page", b"<!-- saved --><html lang='de'>", "text/html"),
        ("page.html", b"<?xml version='1.0'?><html>", "application/xhtml+xml"),
        ("photo.pdf", b"\x89PNG\r\n\x1a\n", "image/png"),
        ("photo", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("article.xml", b"<?xml version='1.0'?><!DOCTYPE article>", media.JATS),
        ("locked.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", media.OLE),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/msword"),
        ("letter.doc", b"{\\rtf1", "application/rtf"),
    ],
)
def test_leading_bytes_decide_before_the_name(name: str, head: bytes, expected: str) -> None:
    """People rename files."""
    assert media_type(name, head) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Notes.MD", "text/markdown"),
        ("notes.txt", "text/plain"),
        ("README", "text/plain"),
        ("table.csv", "text/csv"),
        ("guide.adoc", "text/asciidoc"),
        ("paper.tex", "text/x-tex"),
        ("page.htm", "text/html"),
        ("data.json", "application/json"),
        ("program.xyz", media.UNKNOWN),
    ],
)
def test_the_name_decides_for_plain_text(name: str, expected: str) -> None:
    """Markdown and CSV have no signature."""
    assert media_type(name, b"Honey, wax and %PDF-files") == expected


@pytest.mark.parametrize(
    ("member", "expected"), [("word/x", media.DOCX), ("ppt/x", media.PPTX), ("xl/x", media.XLSX)]
)
def test_an_office_file_is_known_by_its_members(member: str, expected: str) -> None:
    """All three are zip archives; the name does not matter."""
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("[Content_Types].xml", "<Types/>")
        target.writestr(member, "x")
    assert media_type("download.bin", archive.getvalue()) == expected


def test_an_epub_is_known_by_its_declared_type() -> None:
    """EPUB and ODF store their media type in the first member, uncompressed."""
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("mimetype", "application/epub+zip")
        target.writestr("META-INF/container.xml", "<container/>")
    assert media_type("book.zip", archive.getvalue()) == "application/epub+zip"


def test_another_archive_is_a_zip() -> None:
    """It is no document."""
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("a.txt", "x")
    assert media_type("a.zip", archive.getvalue()) == "application/zip"


def test_binary_bytes_under_a_text_name_are_no_text() -> None:
    """A Markdown parser must not get an executable."""
    assert media_type("notes.md", b"\x7fELF\x00\x01") == "application/x-executable"
    assert media_type("notes.md", b"\x01\x02\x00\x03") == media.UNKNOWN


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("drawing.xml", b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", media.SVG),
        ("feed", b"<?xml version='1.0'?><rss/>", media.XML),
        ("notes.txt", b"<?xml version='1.0'?><rss/>", "text/plain"),
        ("song.pdf", b"ID3\x03\x00\x00", "audio/mpeg"),
        ("film.docx", b"\x00\x00\x00\x18ftypmp42", "video/mp4"),
        ("tool.txt", b"MZ\x90\x00", "application/x-msdownload"),
        ("notes.txt", b"MZ is where she lives.", "text/plain"),
        ("backup.pdf", b"a.txt" + bytes(252) + b"ustar\x0000", "application/x-tar"),
    ],
)
def test_unsupported_types_are_detected_too(name: str, head: bytes, expected: str) -> None:
    """So that messages can name them; text that begins like one stays text."""
    assert media_type(name, head) == expected


def test_a_real_word_file_is_known_without_its_name(tmp_path: Path) -> None:
    """The member names of real files are in the first kibibytes."""
    path = documents.docx(tmp_path / "a.docx", "Title", ["Text."])
    assert media_type("a", path.read_bytes()[:8192]) == media.DOCX


def test_a_damaged_declaration_inside_an_archive_is_no_media_type():
    """Its content would appear in messages."""
    declared = b"application/vnd.oasis.opendocument.pr <b>kilograms</b>\n\n--outer--"
    head = b"PK\x03\x04" + bytes(22) + (8).to_bytes(2, "little") + bytes(2) + b"mimetype" + declared + b"PK"

    found = media_type("slides.odp", head)

    assert "\n" not in found
    assert "kilograms" not in found
