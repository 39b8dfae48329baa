"""Every format that is read without a model: its text, and its detection by content."""

import hashlib
import json
import re
from io import BytesIO
from typing import Any

import pytest
from docling_core.types.doc import DoclingDocument

from ingest_assets.parsing import errors
from ingest_assets.parsing.media import DOCLING_FORMATS, media_type
from ingest_tests.fuzz.seeds import seeds
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.hostile import archives
from ingest_tests.parsing.hostile.ole import compound

SEEDS = seeds()
# By suffix: Docling's name of the format, and texts that must be read, in this order.
TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "html": ("html", ("Hives", "fifteen", "kilograms", "three", "A1", "31", "A male bee", "x = 1")),
    "xhtml": ("html", ("Hives", "fifteen", "Ångström é 🐝", "A1")),
    "md": ("md", ("Hives of spring", "kilograms", "A quote", "three", "A1", "31", '"a": [1, 2]', "Setext")),
    "txt": ("md", ("Hives of spring", "kilograms")),
    "docx": ("docx", ("Minutes", "The roof is let.", "Bees", "Hive", "A1", "31")),
    "pptx": ("pptx", ("Hive", "Swarms", "They leave in May.")),
    "xlsx": ("xlsx", ("Hive", "kg", "A1", "31", "True", "1.5")),
    "csv": ("csv", ("hive", "A1", "31", 'a "quoted" word', "24,5", "two\nlines")),
    "adoc": ("asciidoc", ("Hives", "Spring", "kilograms", "one", "A1", "31", "x = 1")),
    "vtt": ("vtt", ("Bees and", "trees", "- second line", "- third & last")),
    "tex": ("latex", ("Hives", "Spring", "kilograms of stores, Hive A1 weighs 31", "A1", "x^2")),
    "eml": ("email", ("Hives 🐝", "Béa <bea@example.org>", "Fifteen kilograms é")),
    "msg": ("email", ("Hives", "Fifteen kilograms of stores")),
    "nxml": (
        "xml_jats",
        ("Hives in", "Ada Lovelace", "Fifteen kilograms.", "Methods", "Bees, 1999."),
    ),
    "xml": ("xml_uspto", ("Hive scale", "A scale for hives.", "kilograms", "1. A scale.")),
    "mhtml": ("mhtml", ("Hives", "Fifteen kilograms €")),
    "boxnote": ("boxnote", ("Hives", "Fifteen kilograms")),
    "json": ("json_docling", ("Hives", "Fifteen kilograms")),
    "epub": ("epub", ("Hives", "fifteen", "Ångström é 🐝", "A1")),
    "odt": ("odt", ("Hives", "Bees and trees")),
    "ods": ("ods", ("A1",)),
    "odp": ("odp", ("Swarms", "Bees and trees")),
    **dict.fromkeys(("png", "jpg", "tiff", "gif", "bmp", "webp"), ("image-embedded", ("bees",))),
}
# Their content does not differ from other plain text, so the name decides.
KNOWN_BY_NAME = ("md", "txt", "csv", "adoc", "boxnote", "json")
KNOWN_IN_TEXT = ("tex", "eml", "mhtml")


def _are_in_order(texts: tuple[str, ...], doctags: str) -> bool:
    return re.search(".*?".join(map(re.escape, texts)), doctags, re.DOTALL) is not None


@pytest.mark.parametrize("suffix", TEXTS)
def test_a_document_of_each_format_gives_its_text(read: Read, suffix: str) -> None:
    """In order, and by the reader of that format."""
    kind, texts = TEXTS[suffix]

    found = read(f"a.{suffix}", SEEDS[suffix][0])

    assert found.parser == f"docling/{kind}"
    assert _are_in_order(texts, found.doctags), found.doctags
    assert found.warnings == ()


@pytest.mark.parametrize("suffix", [suffix for suffix in TEXTS if suffix not in KNOWN_BY_NAME])
def test_a_format_is_detected_without_a_suffix(read: Read, suffix: str) -> None:
    """With a wrong suffix, an unknown one and none."""
    kind, texts = TEXTS[suffix]
    content, names = SEEDS[suffix][0], ("document.txt", "document.bin", "document")
    are_pictures = kind == "image-embedded"  # text recognition is slow: the name only chooses the media type

    found = [read(name, content) for name in (names[:1] if are_pictures else names)]

    assert len({media_type(name, content) for name in names}) == 1
    assert {each.parser for each in found} == {f"docling/{kind}"}
    assert all(_are_in_order(texts, each.doctags) for each in found)


@pytest.mark.parametrize(
    "suffix", [suffix for suffix in TEXTS if suffix not in KNOWN_BY_NAME + KNOWN_IN_TEXT]
)
def test_a_format_is_detected_under_the_suffix_pdf(read: Read, suffix: str) -> None:
    """Content has precedence over the name."""
    assert read("document.pdf", SEEDS[suffix][0]).parser == f"docling/{TEXTS[suffix][0]}"


def test_plain_text_is_read_without_a_suffix(read: Read) -> None:
    """README, LICENSE."""
    assert all(read("README", SEEDS[suffix][0]).parser == "docling/md" for suffix in KNOWN_BY_NAME)


def test_every_format_has_a_document() -> None:
    """So that new formats are tested."""
    assert {kind.split("-")[0] for kind, _ in TEXTS.values()} | {"pdf"} == set(DOCLING_FORMATS.values())


OFFICE = "application/vnd.openxmlformats-officedocument."
WORD, SLIDES = f"{OFFICE}wordprocessingml.document.main", f"{OFFICE}presentationml.presentation.main"
SHEETS = f"{OFFICE}spreadsheetml.sheet.main"
LABELS = {
    "dotx": ("docx", WORD, f"{OFFICE}wordprocessingml.template.main"),
    "docm": ("docx", WORD, "application/vnd.ms-word.document.macroEnabled.main"),
    "dotm": ("docx", WORD, "application/vnd.ms-word.template.macroEnabledTemplate.main"),
    "potx": ("pptx", SLIDES, f"{OFFICE}presentationml.template.main"),
    "ppsx": ("pptx", SLIDES, f"{OFFICE}presentationml.slideshow.main"),
    "pptm": ("pptx", SLIDES, "application/vnd.ms-powerpoint.presentation.macroEnabled.main"),
    "potm": ("pptx", SLIDES, "application/vnd.ms-powerpoint.template.macroEnabled.main"),
    "ppsm": ("pptx", SLIDES, "application/vnd.ms-powerpoint.slideshow.macroEnabled.main"),
    "xltx": ("xlsx", SHEETS, f"{OFFICE}spreadsheetml.template.main"),
    "xlsm": ("xlsx", SHEETS, "application/vnd.ms-excel.sheet.macroEnabled.main"),
    "xltm": ("xlsx", SHEETS, "application/vnd.ms-excel.template.macroEnabled.main"),
    "ott": ("odt", "opendocument.text", "opendocument.text-template"),
    "ots": ("ods", "opendocument.spreadsheet", "opendocument.spreadsheet-template"),
    "otp": ("odp", "opendocument.presentation", "opendocument.presentation-template"),
}


@pytest.mark.parametrize("suffix", LABELS)
def test_templates_shows_and_macros_are_read_like_documents(read: Read, suffix: str) -> None:
    """Only their content type differs; the hash is that of the original file."""
    plain, old, new = LABELS[suffix]
    parts = archives.members_of(SEEDS[plain][0])
    labels = ("[Content_Types].xml", "mimetype", "META-INF/manifest.xml")
    changed = {
        name: part.replace(old.encode(), new.encode()) for name, part in parts.items() if name in labels
    }
    content = archives.archive(parts | changed)

    found = [read(name, content) for name in (f"a.{suffix}", "a.bin")]

    assert any(changed[name] != parts[name] for name in changed)
    assert {each.doctags for each in found} == {read(f"a.{plain}", SEEDS[plain][0]).doctags}
    assert json.loads(found[0].document)["origin"]["binary_hash"] == _hash_of(content)


def _hash_of(content: bytes) -> int:
    return int(hashlib.sha256(content, usedforsecurity=False).hexdigest()[-16:], 16)


def test_each_frame_of_a_scan_is_a_page(read: Read) -> None:
    """Fax machines write many into one file."""
    from PIL import Image, ImageDraw

    frames = []
    for word in ("Honey", "Swarm", "Queen"):
        frame = Image.new("L", (600, 300), "white")
        ImageDraw.Draw(frame).text((60, 100), f"{word} bees", fill="black", font_size=60)
        frames.append(frame)
    made = BytesIO()
    frames[0].save(made, "TIFF", save_all=True, append_images=frames[1:])

    found = read("fax.tif", made.getvalue())

    assert found.pages == 3
    assert _are_in_order(("Honey", "Swarm", "Queen"), found.doctags)


@pytest.mark.parametrize("kind", ["AREA", "RADAR", "DOUGHNUT", "XY_SCATTER", "BUBBLE", "COLUMN_STACKED"])
def test_a_slide_with_any_kind_of_chart_is_read(read: Read, kind: str) -> None:
    """DocTags have no token for some kinds, and Docling's export would fail."""
    import pptx
    from pptx.chart.data import BubbleChartData, CategoryChartData, XyChartData
    from pptx.enum.chart import XL_CHART_TYPE

    chart: Any = {"XY_SCATTER": XyChartData, "BUBBLE": BubbleChartData}.get(kind, CategoryChartData)()
    if isinstance(chart, CategoryChartData):
        chart.categories = ["April", "May"]
        chart.add_series("Swarms", (3, 5))
    else:
        chart.add_series("Swarms").add_data_point(*((1, 2, 3)[: 3 if kind == "BUBBLE" else 2]))
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Bees and trees"
    slide.shapes.add_chart(XL_CHART_TYPE[kind], 0, 0, 3_000_000, 3_000_000, chart)
    made = BytesIO()
    deck.save(made)

    found = read("charts.pptx", made.getvalue())

    assert _are_in_order(("Bees and trees",), found.doctags)
    assert DoclingDocument.model_validate_json(found.document).export_to_doctags() == found.doctags


def test_a_presentation_without_slides_is_empty(read: Read) -> None:
    """It is not damaged."""
    import pptx

    made = BytesIO()
    pptx.Presentation().save(made)
    with pytest.raises(errors.EmptyDocument, match="no slides"):
        read("deck.pptx", made.getvalue())


UNREAD = {
    "old.doc": compound({"WordDocument": b"x" * 99}),
    "old.xls": compound({"Workbook": b"x" * 99}),
    "older.xls": compound({"Book": b"x" * 99}),
    "old.ppt": compound({"PowerPoint Document": b"x" * 99}),
    "letter.rtf": b"{\\rtf1\\ansi Bees}",
    "a.zip": archives.archive({"a.txt": "x"}),
    "a.jar": archives.archive({"META-INF/MANIFEST.MF": "x"}),
    "letter.pages": archives.archive({"Index/Document.iwa": b"x"}),
    "drawing.odg": archives.odf("graphics", "<x/>"),
    "a.xlsb": archives.archive({"[Content_Types].xml": "<Types/>", "xl/workbook.bin": b"x"}),
    "song.wav": b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(99),
    "song.ogg": b"OggS\x00\x02" + bytes(99),
    "film.mkv": b"\x1aE\xdf\xa3" + bytes(99),
    "film.avi": b"RIFF\x24\x00\x00\x00AVI LIST" + bytes(99),
    "drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><text>Bees</text></svg>",
    "report.xbrl": b"<?xml version='1.0'?><xbrl xmlns='http://www.xbrl.org/2003/instance'/>",
    "feed.xml": b"<?xml version='1.0'?><rss><channel/></rss>",
    "settings.json": b'{"bees": 1}',
    "page.ps": b"%!PS-Adobe-3.0\n",
    "photo.heic": b"\x00\x00\x00\x18ftypheic" + bytes(99),
    "noise.dat": bytes((at * 7919 >> 3) & 255 for at in range(999)),
}


@pytest.mark.parametrize("name", UNREAD)
def test_unsupported_files_are_refused_with_advice(read: Read, name: str) -> None:
    """The message names the type and what to do, under any file name."""
    for called in (name, "document.pdf", "document.docx", "document"):
        if media_type(called, UNREAD[name]) in DOCLING_FORMATS:
            continue  # text named like a PDF is an invalid PDF
        with pytest.raises(errors.UnsupportedDocument, match=r"^Un(supported|known) .+\. \w+.*\.$") as caught:
            read(called, UNREAD[name])
        assert caught.value.code == "E_PARSE_UNSUPPORTED"


@pytest.mark.parametrize("name", ["old.doc", "old.xls", "old.ppt"])
def test_an_old_office_file_is_detected_by_its_content(read: Read, name: str) -> None:
    """Here a Word file named like an e-mail."""
    kind = {"doc": "msword", "xls": "vnd.ms-excel", "ppt": "vnd.ms-powerpoint"}[name[4:]]
    with pytest.raises(errors.UnsupportedDocument, match=kind):
        read("letter.msg", UNREAD[name])
