"""Documents as the reader returns them."""

import socket
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath

import pytest
from docling_core.types.doc import DoclingDocument

from ingest_assets.parsing.reader import DocumentReader, document_json, rename_document
from ingest_assets.samples import samples_folder
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.parsing import documents
from ingest_tests.parsing.conftest import Read

PROSE = [
    (72, 760, 20, "Winter feeding"),
    (72, 720, 11, "Colonies need about fifteen kilograms of stores to live through the winter."),
    (72, 704, 11, "Weigh every hive in September and feed the light ones with syrup."),
]
TABLE = [
    (x, 700 - 24 * row, 11, text)
    for row, texts in enumerate([("Hive", "Weight", "Fed"), ("A1", "31 kg", "no"), ("B2", "24 kg", "yes")])
    for x, text in zip((80, 200, 320), texts, strict=True)
]


def test_a_pdf_gives_its_text_and_counts(read: Read) -> None:
    """Text, page count and parser's name, with the text of both lines in order."""
    found = read("feeding.pdf", documents.pdf([PROSE, PROSE]))
    assert found.parser == "docling/pdf-embedded"
    assert found.pages == 2
    assert "fifteen kilograms of stores to live through the winter. Weigh every hive" in found.doctags
    assert found.chars > 200
    assert found.warnings == ()


def test_the_text_of_a_table_in_a_pdf_is_kept(read: Read) -> None:
    """Even if the layout model detects no table."""
    doctags = read("hives.pdf", documents.pdf([TABLE])).doctags
    assert all(text in doctags for _, _, _, text in TABLE)


def test_a_scanned_page_is_read_by_ocr(read: Read, tmp_path: Path) -> None:
    """A page without a text layer."""
    found = read("scan.pdf", documents.scan(tmp_path / "scan.pdf", "Honey bees forage in spring"))
    assert "Honey bees forage in spring" in found.doctags


def test_a_scan_on_its_side_is_read_too(read: Read, tmp_path: Path) -> None:
    """Sheets are scanned in any orientation."""
    found = read("turned.pdf", documents.scan(tmp_path / "t.pdf", "Honey bees forage in spring", turned=True))
    assert "Honey bees forage in spring" in found.doctags


def test_an_image_is_read_by_ocr(read: Read, tmp_path: Path) -> None:
    """A photograph of a page is a document as well."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (900, 300), "white")
    ImageDraw.Draw(picture).text((60, 120), "Swarm control in May", fill="black", font_size=48)
    picture.save(tmp_path / "photo.png")
    found = read("photo.png", tmp_path / "photo.png")
    assert found.parser == "docling/image-embedded"
    assert "Swarm control in May" in found.doctags


def test_an_empty_page_gives_no_characters(read: Read) -> None:
    """This is no failure."""
    found = read("blank.pdf", documents.pdf([[]]))
    assert (found.pages, found.chars) == (1, 0)


def test_html_keeps_headings_tables_and_title(read: Read) -> None:
    """The structure is that of the markup."""
    page = (
        "<html><head><title>Apiary – rules</title></head><body><h1>Rules</h1><p>Wear a veil.</p>"
        "<table><tr><th>Hive</th><th>kg</th></tr><tr><td>A1</td><td>31</td></tr></table></body></html>"
    )
    found = read("rules.html", page.encode())
    assert (found.parser, found.title, found.tables) == ("docling/html", "Rules", 1)
    assert found.chars == len("Rules" + "Wearaveil." + "Hive" + "kg" + "A1" + "31")


def test_a_word_document_is_read_under_any_name(read: Read, tmp_path: Path) -> None:
    """A wrong extension with the right bytes."""
    path = documents.docx(tmp_path / "a", "Minutes", ["The roof is let."], [["Hive", "kg"], ["A1", "31"]])
    found = read("minutes.html", path)
    assert (found.parser, found.title, found.tables) == ("docling/docx", "Minutes", 1)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.md", "# Grüße\n\nÄpfel und Bienen.\n", "Äpfel und Bienen."),
        ("a.txt", "Bees and trees", "Bees and trees"),
        ("a.csv", "hive,kg\nA1,31\n", "A1"),
        ("a.adoc", "= Title\n\nBees and trees.\n", "Bees and trees."),
        ("a.vtt", "WEBVTT\n\n00:00.000 --> 00:02.000\nBees and trees\n", "Bees and trees"),
        ("a.eml", "Subject: Hi\nFrom: a@b.c\nTo: d@e.f\n\nBees and trees\n", "Bees and trees"),
        ("a.tex", r"\documentclass{article}\begin{document}Bees and trees\end{document}", "Bees and trees"),
    ],
)
def test_text_formats_are_read(read: Read, name: str, content: str, expected: str) -> None:
    """All formats that Docling reads without a model."""
    assert expected in read(name, content.encode()).doctags


def test_the_json_is_canonical_and_loads_again(read: Read) -> None:
    """Chunks are computed from it, so it must be complete."""
    found = read("hives.pdf", documents.pdf([PROSE + [(x, y - 400, s, t) for x, y, s, t in TABLE]]))
    loaded = DoclingDocument.model_validate_json(found.document)
    assert document_json(loaded) == found.document
    assert loaded.export_to_doctags() == found.doctags


def test_the_document_has_its_name_and_no_path(read: Read, tmp_path: Path) -> None:
    """Paths must not appear in tables."""
    found = read("deep/folder/Prüfliste.md", b"# List\n")
    origin = DoclingDocument.model_validate_json(found.document).origin
    assert origin is not None
    assert origin.filename == "Prüfliste.md"
    assert str(tmp_path) not in found.document
    assert "content-addressed" not in found.document


def test_pictures_are_counted_but_their_bytes_are_dropped(read: Read, tmp_path: Path) -> None:
    """Base64 images would be much larger than the text."""
    import docx
    from PIL import Image

    Image.effect_noise((200, 200), 80).save(tmp_path / "noise.png")
    document = docx.Document()
    document.add_paragraph("A picture follows.")
    document.add_picture(str(tmp_path / "noise.png"))
    document.save(str(tmp_path / "picture.docx"))
    found = read("picture.docx", tmp_path / "picture.docx")
    assert found.pictures == 1
    assert "base64" not in found.document


def test_form_fields_reach_the_doctags_as_text(read: Read) -> None:
    """DocTags have no tag for them, and Docling's export would fail."""
    page = (
        '<html><body><h1>F</h1><div class="form_region"><div id="key1_marker">1</div>'
        '<div id="key1">Name</div><div id="key1_value1">Ada</div></div></body></html>'
    )
    found = read("form.html", page.encode())
    assert '"marker"' in found.document
    assert all(text in found.doctags for text in ("Name", "Ada"))


def test_nothing_is_fetched(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither from the network nor from the local disk."""

    def refuse(*_: object) -> None:
        raise AssertionError("a document made the reader open a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    (tmp_path / "secret.png").write_bytes(b"secret")
    page = (
        f"<html><body><h1>T</h1><p>Text.</p><img src='file://{tmp_path}/secret.png'>"
        "<img src='http://169.254.169.254/latest/meta-data'><link rel=stylesheet href='http://127.0.0.1/x.css'></body></html>"
    )
    assert "Text." in read("page.html", page.encode()).doctags
    assert "Text." in read("page.md", b"# T\n\nText.\n\n![x](http://169.254.169.254/x.png)\n").doctags


def test_without_ocr_a_scan_gives_no_text(tmp_path: Path, read: Read) -> None:
    """The page is still counted."""
    silent = DocumentReader(ParsingOptions(ocr=False), threads=1)
    found = read("scan.pdf", documents.scan(tmp_path / "scan.pdf", "Honey bees"), silent)
    assert (found.pages, found.chars) == (1, 0)


# A renamed document is byte-equal to one that was read under the new name.

SAMPLES = [
    "association-rules.docx",
    "capping-and-moisture-trial.pdf",
    "first-inspection-course.pptx",
    "hive-records-2024.xlsx",
    "pollen-calendar.html",
    "wabenhygiene-prüfliste.md",
]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_renamed_document_equals_one_read_under_that_name(read: Read, sample: str) -> None:
    """In all formats, only the name differs."""
    path, name = samples_folder() / sample, f"Ünterlagen 2.0.{PurePosixPath(sample).suffix[1:].upper()}"
    before, expected = read(sample, path), read(name, path)

    found = replace(before, document=rename_document(before.document, name))

    assert before.document != expected.document
    assert asdict(found) == asdict(expected)


TINY = {
    "a.csv": "hive,kg\nA1,31\n",
    "a.adoc": "= Hives\n\nText.\n",
    "a.vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n",
    "a.tex": "\\documentclass{article}\\begin{document}\\section{One}Text\\end{document}",
    "a.eml": "From: a@b.org\nSubject: Hives\nMIME-Version: 1.0\nContent-Type: text/plain\n\nText\n",
    "a.txt": "Plain text.\n",
}


@pytest.mark.parametrize("name", TINY)
def test_a_renamed_document_of_a_smaller_format_equals_one_too(read: Read, name: str) -> None:
    """Each has its own reader."""
    before, expected = (read(each, TINY[name].encode()) for each in (name, f"another {name}"))

    assert asdict(replace(before, document=rename_document(before.document, f"another {name}"))) == asdict(
        expected
    )


@pytest.mark.parametrize("name", ["notes.md", "notes", ".notes", "a.b.c", "folder/notes.md", "é 🐝.md"])
def test_renaming_treats_names_like_the_reader(reader: DocumentReader, tmp_path: Path, name: str) -> None:
    """Names with two suffixes, without one, or with nothing else."""
    path = tmp_path / "bytes"
    path.write_text("# Hives\n\nOf 1e3, 0.1 and -0.0.\n\n| a | b |\n|---|---|\n| 1 | é |\n", encoding="utf-8")
    before, expected = (reader.read(path, each, "text/markdown") for each in ("first.md", name))

    assert rename_document(before.document, name) == expected.document
