"""What the guard refuses, repairs and reports before a parser reads the bytes, and its limits."""

import zlib
from collections.abc import Mapping
from typing import Any

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.parsing.errors import CorruptDocument, DecompressionBomb, GarbledText, TooManyPages
from ingest_assets.parsing.guard import check_file
from ingest_assets.parsing.guard.archives import check_sheet
from ingest_assets.parsing.guard.images import page_dpi
from ingest_assets.parsing.guard.markup import (
    MAX_DEPTH,
    check_quote_depth,
    decode_text,
    depth_of,
    flatten_html,
    is_too_deep,
)
from ingest_assets.parsing.guard.pdf import check_pdf
from ingest_assets.parsing.guard.pdf_objects import (
    check_drawings,
    damaged_pages,
    inflate,
    read_contents,
    read_objects,
)
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.stages.doctags import DoctagsStage, unused_format_settings
from ingest_tests.parsing import documents
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.hostile import archives, images, markup, pdfs
from ingest_tests.parsing.hostile.crafted import CRAFTED, Crafted

LIMITS = [name for name in ParsingOptions.model_fields if name.startswith("max_")] + ["ocr_timeout_seconds"]


@pytest.mark.parametrize(
    ("kind", "content", "tight", "words"),
    [
        ("image", images.png(2000, 2000), {"max_image_megapixels": 3}, "limit 3 million"),
        ("image", images.png(2000, 10), {"max_image_side": 1999}, "2000 x 10 pixels"),
        ("docx", archives.archive({"a": "", "b": ""}), {"max_archive_members": 1}, "members: 2 "),
        ("docx", archives.bomb("a.xml", 64), {"max_unpacked_mebibytes": 63}, "63 MiB"),
        ("docx", archives.bomb("a.xml", 64), {"max_compression_ratio": 500}, "500 times"),
        ("html", markup.quadratic_blowup("html", 3000).encode(), {}, "200 times"),
    ],
)
def test_a_file_above_a_limit_is_refused(
    kind: str, content: bytes, tight: Mapping[str, Any], words: str
) -> None:
    """The message names the value, the limit and the setting."""
    setting = next(iter(tight), "max_compression_ratio")
    with pytest.raises(DecompressionBomb, match=words) as caught:
        check_file(kind, content, ParsingOptions(**tight))
    assert f"parsing.{setting}" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "content", "wide"),
    [
        ("image", images.png(13_000, 13_000), {"max_image_megapixels": 200}),
        ("docx", archives.archive({str(at): "" for at in range(11_000)}), {"max_archive_members": 11_000}),
        ("html", markup.quadratic_blowup("html", 3000).encode(), {"max_compression_ratio": 5000}),
    ],
)
def test_a_raised_limit_admits_the_file(kind: str, content: bytes, wide: Mapping[str, Any]) -> None:
    """For trusted sources."""
    check_file(kind, content, ParsingOptions(**wide))


def test_frames_are_pages() -> None:
    """An animation of 100,000 frames is like a PDF of 100,000 pages."""
    with pytest.raises(TooManyPages, match=r"frames: 9 \(limit 8\).*parsing\.max_pages"):
        check_file("image", images.frames(9), ParsingOptions(max_pages=8))


def test_a_small_file_may_have_a_high_compression_ratio() -> None:
    """A sheet of equal rows is no bomb."""
    sheet = "<row><c>1</c></row>" * 400_000
    check_file(
        "xlsx", archives.archive({"xl/workbook.xml": "<x/>", "xl/sheet1.xml": sheet}), ParsingOptions()
    )


def test_a_damaged_attachment_is_ignored() -> None:
    """Attachments are not read."""
    check_file("docx", archives.archive({"word/embeddings/a.xlsx": b"no archive"}), ParsingOptions())


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_is_not_part_of_the_fingerprint(limit: str) -> None:
    """A raised limit must not make other documents stale."""
    raised = ParsingOptions(**{limit: 4321})
    assert DoctagsStage(parsing=raised).config() == DoctagsStage().config()


def test_the_html_mode_is_part_of_web_pages_fingerprints_only() -> None:
    """Another mode makes only web pages stale."""
    assert DoctagsStage(parsing=ParsingOptions(html="strict")).config() != DoctagsStage().config()
    assert "html" not in unused_format_settings("text/html")
    assert "html" in unused_format_settings("text/markdown")


@pytest.mark.parametrize(
    ("size", "claimed", "expected"),
    [
        ((1240, 1754), (150.0, 150.0), (150.0, 150.0)),
        ((900, 300), (72.0, 72.0), (72.0, 72.0)),
        ((1728, 1143), (204.0, 98.0), (204.0, 98.0)),
        ((160, 60), (256.0, 1.0), (72.0, 72.0)),
        ((160, 60), (1.0, 1.0), (72.0, 72.0)),
        ((14_000, 7000), (72.0, 72.0), (720.0, 720.0)),
    ],
)
def test_an_image_is_a_page_of_plausible_size(
    size: tuple[int, int], claimed: tuple[float, float], expected: tuple[float, float]
) -> None:
    """A missing or wrong resolution would make it metres wide."""
    assert page_dpi(size, claimed) == expected


def test_few_cells_far_apart_are_many_cells() -> None:
    """Readers iterate over all cells between; the declared size of a sheet is ignored."""
    near = b'<dimension ref="A1:XFD1048576"/><c r="A1"/><c r="B9"/>'
    check_sheet(near, ParsingOptions())
    with pytest.raises(DecompressionBomb, match="sheet of the workbook"):
        check_sheet(b'<dimension ref="A1:B9"/><x:c s="1" r="a1"/><x:c r="xfd99999"/>', ParsingOptions())


# The objects of an untrusted PDF.

OPTIONS = ParsingOptions()
LINES = [(72, 700, 12, "Bees and trees")]


def test_objects_are_found_in_file_order() -> None:
    """Streams are skipped, and no cross-reference table is needed."""
    content = pdfs.one_page(pdfs.stream(b"7 0 obj <</Not/One>> endobj"), b"<</Last 1>>")
    cut = content[: content.rindex(b"xref\n")]
    assert [each.number for each in read_objects(cut)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_stream_with_a_wrong_length_ends_at_its_end_marker(line_end: bytes) -> None:
    """Lengths are often wrong."""
    for length in (b"5", b"9999", b"8 0 R"):
        head = b"1 0 obj<</Length %s>>stream%s" % (length, line_end)
        (found,) = read_objects(head + b"12345\nendstream endobj")
        assert bytes(found.packed or b"").strip() == b"12345"


def test_filters_are_decoded_in_order() -> None:
    """Two compressions and hexadecimal digits."""
    packed = zlib.compress(zlib.compress(b"Bees")).hex().encode() + b">"
    names = b"/Filter[/ASCIIHexDecode/FlateDecode/FlateDecode]"
    (found,) = read_objects(b"1 0 obj" + pdfs.stream(packed, names) + b"endobj")
    assert b"".join(inflate(found)) == b"Bees"


def test_a_stream_without_a_checksum_is_not_damaged() -> None:
    """No reader verifies it."""
    packed = zlib.compress(b"Bees and trees")[:-4]
    contents = read_contents(pdfs.one_page(pdfs.stream(packed, b"/Filter/FlateDecode")), OPTIONS)
    assert contents.damaged == set()


def test_damaged_pages_are_numbered_by_the_page_tree() -> None:
    """Not by their order in the file."""
    broken = pdfs.three_pages(pdfs.stream(b"\x00broken", b"/Filter/FlateDecode"))
    assert damaged_pages(read_contents(broken, OPTIONS)) == ([2], 3)
    assert damaged_pages(read_contents(documents.pdf([LINES] * 3), OPTIONS)) == ([], 3)


def test_forms_may_draw_forms() -> None:
    """Five levels of two each are allowed, forty are not."""
    check_drawings(read_contents(pdfs.doubling_forms(levels=5), OPTIONS))
    with pytest.raises(DecompressionBomb):
        check_drawings(read_contents(pdfs.doubling_forms(levels=40), OPTIONS))


def test_resources_that_name_a_form_do_not_draw_it() -> None:
    """Writers share one list of resources among all forms."""
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</Fm 6 0 R>>>>"
    content = pdfs.one_page(pdfs.stream(pdfs.TEXT + b" /Fm Do"), pdfs.stream(b"0 0 9 9 re f", form))
    check_drawings(read_contents(content, OPTIONS))


def test_a_harmless_pdf_has_no_warnings() -> None:
    """Encrypted or not."""
    assert check_pdf(documents.pdf([LINES] * 2), OPTIONS) == ()
    assert check_pdf(documents.pdf([LINES], password=""), OPTIONS) == ()


def test_pdf_limits_can_be_raised() -> None:
    """They are settings."""
    wide = OPTIONS.model_copy(update={"max_image_megapixels": 2000, "max_compression_ratio": 2000})
    check_pdf(pdfs.giant_page(14_400), wide)
    check_pdf(pdfs.flate_bomb(64), wide)
    with pytest.raises(DecompressionBomb, match=r"200 times its size.*parsing\.max_compression_ratio"):
        check_pdf(pdfs.flate_bomb(64), OPTIONS)


# Text in any encoding: read, repaired or refused.

RUSSIAN = "Пчёлы собирают мёд весной, и деревья цветут в саду. " * 20


@pytest.mark.parametrize(
    ("content", "expected", "warning"),
    [
        ("Bees é 🐝".encode(), "Bees é 🐝", None),
        (b"\xef\xbb\xbfBees", "Bees", None),
        ("Bees é".encode("utf-16"), "Bees é", None),
        ("Bees é".encode("utf-32"), "Bees é", None),
        ("Grüße, schön".encode("cp1252"), "Grüße, schön", "W_TEXT_ENCODING: not UTF-8, read as windows-1252"),
        (RUSSIAN.encode("koi8-r"), RUSSIAN, "W_TEXT_ENCODING: not UTF-8, read as koi8_r"),
        (RUSSIAN.encode("cp1251"), RUSSIAN, "W_TEXT_ENCODING: not UTF-8, read as cp1251"),
        ("é é é é é".encode() + b"\xff!", "é\ufffd!", "W_TEXT_REPLACED: 1 characters could not be decoded"),
        (b"Bees and trees " * 9 + b"\x00", "\ufffd", "W_TEXT_REPLACED: 1 characters could not be decoded"),
    ],
)
def test_bytes_are_decoded(content: bytes, expected: str, warning: str | None) -> None:
    """By byte-order mark, as UTF-8, or by detection; a warning names the encoding."""
    decoded = decode_text(content)
    assert decoded.text.endswith(expected)
    assert decoded.warnings == ((warning,) if warning else ())


def test_a_declared_encoding_is_used_if_it_fits() -> None:
    """A Japanese page that declares it needs no detection."""
    decoded = decode_text("蜂".encode("shift_jis"), "shift_jis")
    assert (decoded.text, decoded.warnings, decoded.is_as_declared) == ("蜂", (), True)
    assert decode_text("é".encode(), "no-such-encoding").text == "é"


@pytest.mark.parametrize(
    "content",
    [bytes(range(128, 256)) * 40, bytes(range(1, 256)) * 40, b"\x01\x02\x03abc" * 100, bytes(20) + b"abc"],
)
def test_undecodable_bytes_are_garbled(content: bytes) -> None:
    """Control characters, or invalid in any encoding."""
    with pytest.raises(GarbledText):
        decode_text(content)


def test_depth_is_counted_without_implicit_closing() -> None:
    """Void elements and closing tags of elements that are not open do not count."""
    assert depth_of("<div><p>a</p><br><img src=x></div></b><p>") == 2
    assert depth_of("<p>" * 300) == 300
    assert depth_of("<div><span></div><div></div>") == 2


def test_tags_in_scripts_and_comments_do_not_count() -> None:
    """Templates in scripts are long and close nothing."""
    tags = "<div>" * (MAX_DEPTH + 9)
    assert is_too_deep(tags)
    assert not is_too_deep(f"<script>x = '{tags}'</script><p>Bees</p><!-- {tags} -->")


def test_flattening_closes_elements_and_keeps_the_text() -> None:
    """A list of any length whose items are not closed is a list."""
    items = "".join(f"<li>item {at} &amp; <a href='#{at}'>more</a>" for at in range(500))
    flat = flatten_html(f"<ul>{items}</ul><p>after<script>alert(1)</script>")
    assert flat.count("<li>") == flat.count("</li>") == 500
    assert depth_of(flat) < 10
    assert 'item 499 &amp; <a href="#499">more</a>' in flat
    assert "alert" not in flat


def test_text_below_the_depth_limit_is_kept() -> None:
    """Only its elements are dropped."""
    flat = flatten_html("<div>" * 5000 + "bottom" + "</div>" * 5000 + "<p>after</p>")
    assert depth_of(flat) == MAX_DEPTH
    assert flat.index("bottom") < flat.index("after")


def test_the_depth_of_quotes_is_limited() -> None:
    """A hundred levels are a long thread, a thousand an attack."""
    check_quote_depth("> " * 100 + "x")
    with pytest.raises(CorruptDocument, match="limit 100"):
        check_quote_depth("text\n\n" + "> " * 101 + "x")


# Hostile files end with their exact code, or are read with a warning.


@pytest.mark.parametrize("crafted", CRAFTED, ids=lambda crafted: crafted.name)
def test_a_crafted_file_ends_with_its_code(read: Read, crafted: Crafted) -> None:
    """In one line, without a path."""
    ending, words = _ending(read, crafted)

    assert ending == crafted.code, words
    assert any(word.startswith(crafted.warning) for word in words) or not crafted.warning
    assert not any("\n" in word or "content-addressed" in word for word in words)


def _ending(read: Read, crafted: Crafted) -> tuple[str, tuple[str, ...]]:
    try:
        return "ok", read(crafted.name, crafted.content()).warnings
    except ItemError as error:
        return error.code, (str(error),)


def test_names_of_crafted_files_are_unique() -> None:
    """They are written to one folder."""
    assert len({crafted.name for crafted in CRAFTED}) == len(CRAFTED)
