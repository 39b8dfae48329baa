"""The content decides what a document is; names and headers choose among what it allows."""

import gzip
from pathlib import Path

import pytest

from ingest_assets.intake.fetch.sniffing import charset, media_type
from ingest_assets.parsing.media import media_type as sniff
from ingest_assets.samples import samples_folder
from ingest_tests.intake.fetch.conftest import Desk
from ingest_tests.intake.fetch.site import PDF, Site

PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


def test_html_served_as_pdf_is_html(site: Site, desk: Desk):
    """A login page instead of the paper."""
    url = site.page("/paper.pdf", lambda v: v.reply(body=PAGE, content_type="application/pdf"))

    came = desk.fetch(url)

    assert (came.media_type, came.charset) == ("text/html", "utf-8")
    assert came.declared_type == "application/pdf"


@pytest.mark.parametrize(
    ("head", "name", "declared", "expected"),
    [
        (PAGE, "/a.pdf", "application/pdf", "text/html"),
        (b"<div class=x>Hi</div>", "/a.pdf", "application/pdf", "text/html"),
        (b"<!-- made --> \n<TABLE>", "/", None, "text/html"),
        (PAGE.decode().encode("utf-16"), "/", "application/pdf", "text/html"),
        (PDF, "/a.html", "text/html", "application/pdf"),
        (PDF, "/download", "application/octet-stream", "application/pdf"),
        (b"Just text.", "/a.pdf", "application/pdf", "text/plain"),
        (b"Just text.", "/notes", None, "text/plain"),
        (b"Just text.", "/notes.txt", "text/html", "text/plain"),
        (b"# Title\n", "/readme.md", "text/plain", "text/markdown"),
        (b'<p align="center">', "/README.md", "text/plain", "text/markdown"),
        (b"a,b\n1,2\n", "/export?id=3", "text/csv", "text/csv"),
        (b"Some words", "/page", "text/html", "text/html"),
        (b"\x00\x01\x02\x03", "/a.pdf", "application/pdf", "application/octet-stream"),
        (b"\x89PNG\r\n\x1a\n\0", "/a.jpg", "image/jpeg", "image/png"),
        (b"", "/a.pdf", "application/pdf", "application/octet-stream"),
        (gzip.compress(b"x", mtime=0), "/a.pdf", None, "application/gzip"),
    ],
)
def test_a_type_that_the_content_contradicts_is_ignored(
    head: bytes, name: str, declared: str | None, expected: str
):
    """Neither the header nor the name in the URL is trusted."""
    assert media_type(head, [name, None], declared, sniff) == expected


def test_a_suggested_name_helps_where_the_url_has_none():
    """`/download?id=7` with `filename="data.csv"`."""
    assert media_type(b"a,b\n", ["/download", "data.csv"], None, sniff) == "text/csv"


@pytest.mark.parametrize("suffix", [".pdf", ".docx", ".pptx", ".xlsx", ".html", ".md"])
def test_a_fetched_sample_has_the_type_of_the_file(suffix: str):
    """As when it is read from a folder."""
    sample = next(path for path in sorted(samples_folder().iterdir()) if path.suffix == suffix)
    head = sample.read_bytes()[:8192]

    assert media_type(head, [f"/{sample.name}"], None, sniff) == sniff(sample.name, head)


@pytest.mark.parametrize(
    ("content", "declared", "expected"),
    [
        ("süß".encode(), "latin-1", "utf-8"),
        ("süß".encode("latin-1"), None, "windows-1252"),
        ("süß".encode("latin-1"), "utf-8", "windows-1252"),
        ("жук".encode("koi8-r"), "koi8-r", "koi8-r"),
        ("жук".encode("koi8-r"), "no-such-charset", "windows-1252"),
        (b"<meta charset=koi8-r>" + "жук".encode("koi8-r"), "utf-8", "koi8-r"),
        (b'<?xml version="1.0" encoding="iso-8859-2"?>' + b"\xb3", None, "iso8859-2"),
        (b'<?xml version="1.0" encoding="utf-8"?>' + b"\xb3", "iso-8859-2", "iso8859-2"),
        ("ü".encode("utf-16"), "utf-8", "utf-16"),
        (b"\xef\xbb\xbfabc", "latin-1", "utf-8"),
        ("日本".encode("iso-2022-jp"), "iso-2022-jp", "iso2022_jp"),
        (b"+ADw-script+AD4-", "utf-7", "utf-8"),
        (b"plain", None, "utf-8"),
        (b"x" * 20_000 + b"\xfc", "latin-1", "windows-1252"),
        (b"x" * 8191 + "ü".encode() + b"x", None, "utf-8"),
        (b"x\xfc", "zip", "windows-1252"),
    ],
)
def test_a_charset_must_fit_the_content(content: bytes, declared: str | None, expected: str, tmp_path: Path):
    """The BOM, else UTF-8 if it is valid, else a declared charset that fits."""
    path = tmp_path / "text"
    path.write_bytes(content)

    assert charset(path, content[:8192], declared) == expected
