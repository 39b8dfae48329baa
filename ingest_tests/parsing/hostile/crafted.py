"""The crafted files, each with its exact error code, or `ok` and the warning it must have."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ingest_tests.fuzz.markup_seeds import JATS
from ingest_tests.parsing import documents
from ingest_tests.parsing.hostile import archives, images, markup, ole, pdfs

BOMB = "E_SECURITY_DECOMPRESSION_BOMB"
TOO_LONG = "E_SECURITY_TOO_MANY_PAGES"
CORRUPT = "E_PARSE_CORRUPT"
LINES = [(72, 700, 12, "Bees and trees in the garden"), (72, 680, 12, "and honey in the hive.")]
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
_MAIL = "From: ada@example.org\nSubject: Bees\nContent-Type: text/html; charset=utf-8\n\n"
_METADATA = "http://169.254.169.254/latest/meta-data"


@dataclass(frozen=True)
class Crafted:
    """A file, its name, and the result of reading it."""

    name: str
    make: Callable[[], bytes | str]
    code: str
    warning: str = ""

    def content(self) -> bytes:
        """Its bytes."""
        made = self.make()
        return made.encode() if isinstance(made, str) else made


def _docx() -> bytes:
    with TemporaryDirectory() as folder:
        return documents.docx(Path(folder) / "a", "Minutes", ["Bees and trees"]).read_bytes()


def _docx_with(**parts: str | bytes) -> bytes:
    return archives.archive(archives.members_of(_docx()) | parts)


def _laughing_docx() -> bytes:
    return _docx_with(**{"word/document.xml": markup.billion_laughs("w:document")})


def _laughing_odt() -> bytes:
    return archives.odf("text", markup.billion_laughs("office:document-content"))


def _climbing_docx() -> bytes:
    return _docx_with(**{"../../climbed": b"x", "/tmp/climbed": b"x", "word/media/../../../climbed": b"x"})


def _deep_mail(depth: int = 1000) -> str:
    mail = "Subject: Bees\n\nBees"
    for _ in range(depth):
        mail = f"MIME-Version: 1.0\nContent-Type: message/rfc822\n\n{mail}"
    return f"From: ada@example.org\n{mail}"


def _padded_laughing_docx() -> bytes:
    """The declarations follow a very long comment."""
    comment = f"<?xml version='1.0'?><!--{'x' * 100_000}-->"
    return _docx_with(**{"word/document.xml": markup.billion_laughs("w:document", prolog=comment)})


def _broken_page() -> bytes:
    return pdfs.three_pages(pdfs.stream(b"\x00no deflate stream", b"/Filter/FlateDecode"))


PDFS = (
    Crafted("encrypted.pdf", lambda: documents.pdf([LINES], password="secret"), "E_PARSE_PASSWORD"),
    Crafted("owner-only.pdf", lambda: documents.pdf([LINES], password=""), "ok"),
    Crafted("100000-pages.pdf", lambda: pdfs.many_pages(100_000), TOO_LONG),
    Crafted("one-page-100000-times.pdf", lambda: pdfs.one_page_many_times(100_000), TOO_LONG),
    Crafted("claims-100000-pages.pdf", lambda: pdfs.claimed_pages(100_000), TOO_LONG),
    Crafted("claims-10-pages.pdf", lambda: pdfs.claimed_pages(10), "ok", "W_PARSE_PARTIAL: page 10"),
    Crafted("flate-bomb.pdf", pdfs.flate_bomb, BOMB),
    Crafted("flate-bomb-twice.pdf", pdfs.twice_flate_bomb, BOMB),
    Crafted("object-stream-bomb.pdf", pdfs.object_stream_bomb, BOMB),
    Crafted("giant-page.pdf", pdfs.giant_page, BOMB),
    Crafted("large-page.pdf", lambda: pdfs.giant_page(14_400), BOMB),
    Crafted("giant-picture.pdf", pdfs.giant_picture, "ok"),
    Crafted("form-draws-itself.pdf", pdfs.recursive_form, BOMB),
    Crafted("forms-draw-twice.pdf", pdfs.doubling_forms, BOMB),
    Crafted("page-tree-loop.pdf", pdfs.page_tree_loop, CORRUPT),
    Crafted("xref-loop.pdf", pdfs.looping_xref, "ok"),
    Crafted("nested-arrays.pdf", pdfs.nested_arrays, "ok"),
    Crafted("outline-loop.pdf", pdfs.outline_loop, "ok"),
    Crafted("hex-of-hex.pdf", pdfs.hex_chain, "ok"),
    Crafted("run-length-bomb.pdf", pdfs.run_length, "ok"),
    Crafted("font-bomb.pdf", pdfs.font_bomb, BOMB),
    Crafted("javascript.pdf", pdfs.with_javascript, "ok", "W_PDF_JAVASCRIPT"),
    Crafted("spelt-script.pdf", lambda: pdfs.with_javascript(b"/J#61vaScript"), "ok", "W_PDF_JAVASCRIPT"),
    Crafted("packed-javascript.pdf", pdfs.with_hidden_javascript, "ok", "W_PDF_JAVASCRIPT"),
    Crafted("embedded-file.pdf", pdfs.with_embedded_file, "ok", "W_PDF_EMBEDDED_FILES"),
    Crafted("broken-page.pdf", _broken_page, "ok", "W_PARSE_PARTIAL: page 2: has damaged content"),
    Crafted("no-content.pdf", lambda: pdfs.three_pages(b"<</No/Stream>>"), "ok", "W_PARSE_PARTIAL: page 2"),
    Crafted("truncated.pdf", lambda: documents.pdf([LINES])[:-300], CORRUPT),
    Crafted("header-only.pdf", lambda: b"%PDF-1.7\n", CORRUPT),
    Crafted("no-pdf.pdf", lambda: b"This is not a PDF.", "E_SECURITY_INVALID_PDF"),
    Crafted("zero-bytes.pdf", lambda: b"", "E_PARSE_EMPTY"),
)

ARCHIVES = (
    Crafted("bomb.docx", lambda: archives.bomb("word/document.xml"), BOMB),
    Crafted("bomb.xlsx", lambda: archives.bomb("xl/workbook.xml"), BOMB),
    Crafted("bomb.pptx", lambda: archives.bomb("ppt/presentation.xml"), BOMB),
    Crafted("bomb.epub", lambda: archives.bomb("META-INF/container.xml"), BOMB),
    Crafted("bomb.odt", lambda: archives.bomb("content.xml"), BOMB),
    Crafted("ratio.docx", lambda: archives.bomb("word/document.xml", 400), BOMB),
    Crafted("lying-bomb.docx", lambda: archives.lying_bomb("word/document.xml"), CORRUPT),
    Crafted("nested-bomb.docx", lambda: archives.nested_bomb("word/a.xml", "word/embeddings/a.xlsx"), BOMB),
    Crafted("russian-dolls.docx", lambda: archives.russian_dolls("word/document.xml"), BOMB),
    Crafted("100000-members.docx", lambda: archives.crowd("word/document.xml"), BOMB),
    Crafted("overlapping.docx", lambda: archives.overlapping("word/document.xml"), BOMB),
    Crafted("far-cell.xlsx", archives.far_cell, BOMB),
    Crafted("deep.epub", lambda: archives.epub(markup.deep_html(20_000)), "ok", "W_HTML_FLATTENED"),
    Crafted("far-cell.ods", archives.far_odf_cell, BOMB),
    Crafted("endless-gap.odt", archives.wide_odf_gap, BOMB),
    Crafted("billion-laughs.odt", _laughing_odt, BOMB),
    Crafted("wide-dolls.docx", lambda: archives.wide_dolls("word/document.xml"), BOMB),
    Crafted("paths-that-lead-out.docx", _climbing_docx, "ok"),
    Crafted("billion-laughs.docx", _laughing_docx, BOMB),
    Crafted("padded-laughs.docx", _padded_laughing_docx, BOMB),
    Crafted("locked.docx", lambda: archives.locked(_docx()), "E_PARSE_PASSWORD"),
    Crafted("locked.odt", archives.locked_odf, "E_PARSE_PASSWORD"),
    Crafted("locked.epub", archives.locked_epub, "E_PARSE_PASSWORD"),
    Crafted("truncated.docx", lambda: _docx()[:-2000], CORRUPT),
    Crafted("some.zip", lambda: archives.archive({"a.txt": "x"}), "E_PARSE_UNSUPPORTED"),
)

MARKUP = (
    Crafted("billion-laughs.xml", lambda: markup.billion_laughs("article"), BOMB),
    Crafted("billion-laughs.svg", lambda: markup.billion_laughs("svg"), BOMB),
    Crafted("billion-laughs.html", lambda: markup.billion_laughs("html", prolog=""), BOMB),
    Crafted("billion-laughs.xhtml", lambda: markup.billion_laughs("html"), BOMB),
    Crafted("billion-laughs.nxml", lambda: markup.billion_laughs("article").encode("utf-16"), BOMB),
    Crafted("quadratic.nxml", lambda: markup.quadratic_blowup("article"), BOMB),
    Crafted("endless-entity.xml", lambda: markup.endless_entity("article"), BOMB),
    Crafted(
        "external-entity.nxml",
        lambda: markup.with_external_entity(JATS, "file:///etc/hostname"),
        "ok",
        "W_XML_EXTERNAL_ENTITY",
    ),
    Crafted("plain.svg", lambda: "<svg xmlns='http://www.w3.org/2000/svg'/>", "E_PARSE_UNSUPPORTED"),
    Crafted("deep.html", lambda: markup.deep_html(100_000), "ok", "W_HTML_FLATTENED"),
    Crafted("unclosed.html", lambda: markup.unclosed_html(50_000), "ok", "W_HTML_FLATTENED"),
    Crafted("file-images.html", lambda: markup.resources("file:///etc/hostname"), "ok"),
    Crafted("metadata-images.html", lambda: markup.resources(_METADATA), "ok"),
    Crafted("deep.eml", lambda: _MAIL + markup.deep_html(20_000), "ok", "W_HTML_FLATTENED"),
    Crafted("deep-blocks.md", lambda: "<div>\n\n" * 500 + "Bees", "ok", "W_HTML_FLATTENED"),
    Crafted("deep-quotes.md", lambda: ">" * 2000 + " x", CORRUPT),
    Crafted("deep.json", lambda: "[" * 100_000, "E_PARSE_UNSUPPORTED"),
)

IMAGES = (
    Crafted("one-pixel-high.png", lambda: images.png(2_000_000, 1), BOMB),
    Crafted("one-pixel-wide.png", lambda: images.png(1, 2_000_000), BOMB),
    Crafted("ten-billion-pixels.png", lambda: images.png(100_000, 100_000), BOMB),
    Crafted("ten-billion-pixels.tiff", lambda: images.tiff(100_000, 100_000), BOMB),
    Crafted("ten-billion-pixels.bmp", lambda: images.bmp(100_000, 100_000), BOMB),
    Crafted("6000-frames.gif", lambda: images.frames(6000), TOO_LONG),
    Crafted("truncated.png", lambda: images.png(200, 200)[:-30], CORRUPT),
)

TEXTS = (
    Crafted("million-cells.csv", lambda: "a,b,c\n" * 400_000, "E_SECURITY_TOO_LARGE"),
    Crafted("one-long-line.csv", lambda: "a," * 1_000_000, "E_SECURITY_TOO_LARGE"),
    Crafted("unmarked-wide.txt", lambda: ("Bees and trees. " * 9).encode("utf-16-le"), "ok"),
    Crafted("nothing-but-zeros.txt", lambda: bytes(100_000), "E_PARSE_UNSUPPORTED"),
    Crafted("nothing-but-accents.txt", lambda: "a" + "\u0301" * 100_000, "ok"),
    Crafted("deep-lists.md", lambda: "\n".join("  " * at + "- x" for at in range(1000)), CORRUPT),
    Crafted("deep-braces.tex", lambda: "\\documentclass{a}" + "{" * 5000 + "x" + "}" * 5000, "ok"),
    Crafted("deep-mail.eml", _deep_mail, CORRUPT),
    Crafted("endless-mail.msg", lambda: ole.claiming(1 << 30), BOMB),
    Crafted("garbled.txt", lambda: bytes(range(1, 32)) * 99 + bytes(range(128, 256)) * 99, "E_PARSE_GARBLED"),
    Crafted("garbled.html", lambda: b"<html><body>" + bytes(range(128, 256)) * 50, "E_PARSE_GARBLED"),
    Crafted("zero-bytes.txt", lambda: b"", "E_PARSE_EMPTY"),
    Crafted("western.txt", lambda: "Grüße vom Bienenstock, schön!".encode("cp1252"), "ok", "W_TEXT_ENCODING"),
    Crafted("cyrillic.txt", lambda: ("Пчёлы собирают мёд. " * 20).encode("koi8-r"), "ok", "W_TEXT_ENCODING"),
    Crafted("wide.md", lambda: "# Bees\n\nand trees é".encode("utf-16"), "ok"),
    Crafted("one-bad-byte.md", lambda: "Bees é é é ".encode() + b"\xff trees", "ok", "W_TEXT_REPLACED"),
    Crafted("one-zero-byte.md", lambda: b"Bees " * 100 + b"\x00 trees", "ok", "W_TEXT_REPLACED"),
)

KINDS = (
    Crafted("old.doc", lambda: _OLE, "E_PARSE_UNSUPPORTED"),
    Crafted("old.xls", lambda: _OLE, "E_PARSE_UNSUPPORTED"),
    Crafted("old.ppt", lambda: _OLE, "E_PARSE_UNSUPPORTED"),
    Crafted("locked-office.docx", lambda: _OLE + "EncryptedPackage".encode("utf-16-le"), "E_PARSE_PASSWORD"),
    Crafted("letter.rtf", lambda: "{\\rtf1 Bees}", "E_PARSE_UNSUPPORTED"),
    Crafted("all.tar.gz", lambda: b"\x1f\x8b\x08\x00" + bytes(99), "E_PARSE_UNSUPPORTED"),
    Crafted("program.pdf", lambda: b"\x7fELF\x02\x01\x01" + bytes(99), "E_PARSE_UNSUPPORTED"),
    Crafted("program.docx", lambda: b"MZ\x90\x00" + bytes(99), "E_PARSE_UNSUPPORTED"),
    Crafted("song.mp3", lambda: b"ID3\x03\x00" + bytes(99), "E_PARSE_UNSUPPORTED"),
    Crafted("film.mp4", lambda: b"\x00\x00\x00\x18ftypmp42" + bytes(99), "E_PARSE_UNSUPPORTED"),
    Crafted("random.bin", lambda: bytes((at * 7919 >> 3) & 255 for at in range(9999)), "E_PARSE_UNSUPPORTED"),
    Crafted("a-pdf.txt", lambda: documents.pdf([LINES]), "ok"),
    Crafted("a-docx.pdf", _docx, "ok"),
    Crafted("an-image.html", lambda: images.png(64, 64), "ok"),
    Crafted("a-page.pdf", lambda: "<html><body><h1>T</h1><p>Bees</p></body></html>", "ok"),
)
CRAFTED = (*PDFS, *ARCHIVES, *MARKUP, *IMAGES, *TEXTS, *KINDS)
