"""What the guard refuses, repairs and notes before a parser sees the bytes; its limits are settings."""

import zlib
from collections.abc import Mapping
from typing import Any

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.parsing.errors import CorruptDocument, DecompressionBomb, GarbledText, TooManyPages
from ingest_assets.parsing.guard import inspect
from ingest_assets.parsing.guard.archives import check_sheet
from ingest_assets.parsing.guard.images import page_dpi
from ingest_assets.parsing.guard.markup import (
    MAX_DEPTH,
    decode_text,
    depth_of,
    flattened,
    is_too_deep,
    refuse_deep_quotes,
)
from ingest_assets.parsing.guard.pdf import check_pdf
from ingest_assets.parsing.guard.pdf_objects import (
    damaged_pages,
    inflate,
    read_contents,
    read_objects,
    refuse_endless_drawing,
)
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.stages.doctags import DoctagsStage, unread_by
from ingest_tests.parsing import documents
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.hostile import archives, images, markup, pdfs
from ingest_tests.parsing.hostile.crafted import CRAFTED, Crafted

LIMITS = [name for name in ParsingOptions.model_fields if name.startswith("max_")] + ["ocr_timeout_seconds"]


@pytest.mark.parametrize(
    ("kind", "content", "tight", "words"),
    [
        ("image", images.png(2000, 2000), {"max_image_megapixels": 3}, "3 million pixels"),
        ("image", images.png(2000, 10), {"max_image_side": 1999}, "2000 x 10 pixels"),
        ("docx", archives.archive({"a": "", "b": ""}), {"max_archive_members": 1}, "2 members"),
        ("docx", archives.bomb("a.xml", 64), {"max_unpacked_mebibytes": 63}, "63 MiB"),
        ("docx", archives.bomb("a.xml", 64), {"max_compression_ratio": 500}, "500 times"),
        ("html", markup.quadratic_blowup("html", 3000).encode(), {}, "200 times"),
    ],
)
def test_what_is_above_a_limit_is_refused_by_name(
    kind: str, content: bytes, tight: Mapping[str, Any], words: str
) -> None:
    """The message says what it is, what is allowed and which setting changes that."""
    setting = next(iter(tight), "max_compression_ratio")
    with pytest.raises(DecompressionBomb, match=words) as caught:
        inspect(kind, content, ParsingOptions(**tight))
    assert f"parsing.{setting}" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "content", "wide"),
    [
        ("image", images.png(13_000, 13_000), {"max_image_megapixels": 200}),
        ("docx", archives.archive({str(at): "" for at in range(11_000)}), {"max_archive_members": 11_000}),
        ("html", markup.quadratic_blowup("html", 3000).encode(), {"max_compression_ratio": 5000}),
    ],
)
def test_a_raised_limit_lets_it_pass(kind: str, content: bytes, wide: Mapping[str, Any]) -> None:
    """Whoever trusts a source may say so."""
    inspect(kind, content, ParsingOptions(**wide))


def test_frames_are_pages() -> None:
    """An animation of a hundred thousand frames is as long as a PDF of as many pages."""
    with pytest.raises(TooManyPages, match=r"9 frames.*8 allowed.*parsing\.max_pages"):
        inspect("image", images.frames(9), ParsingOptions(max_pages=8))


def test_small_things_may_pack_well() -> None:
    """A sheet of equal rows is no bomb."""
    sheet = "<row><c>1</c></row>" * 400_000
    inspect("xlsx", archives.archive({"xl/workbook.xml": "<x/>", "xl/sheet1.xml": sheet}), ParsingOptions())


def test_an_archive_that_only_looks_like_one_inside_is_nobodys_concern() -> None:
    """Attachments are not read."""
    inspect("docx", archives.archive({"word/embeddings/a.xlsx": b"no archive"}), ParsingOptions())


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_is_not_part_of_the_fingerprint(limit: str) -> None:
    """Raising one must not convert every other document again."""
    raised = ParsingOptions(**{limit: 4321})
    assert DoctagsStage(parsing=raised).config() == DoctagsStage().config()


def test_how_pages_of_the_web_are_read_is_part_of_their_fingerprints_alone() -> None:
    """Another mode reads web pages anew, and nothing else."""
    assert DoctagsStage(parsing=ParsingOptions(html="strict")).config() != DoctagsStage().config()
    assert "html" not in unread_by("text/html")
    assert "html" in unread_by("text/markdown")


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
def test_a_picture_is_a_page_of_plausible_size(
    size: tuple[int, int], claimed: tuple[float, float], expected: tuple[float, float]
) -> None:
    """A camera's picture is not four metres wide, and a broken header does not make it so."""
    assert page_dpi(size, claimed) == expected


def test_few_cells_far_apart_are_many_cells() -> None:
    """Readers of sheets go through all that lie between; what a sheet says of its size counts for nothing."""
    near = b'<dimension ref="A1:XFD1048576"/><c r="A1"/><c r="B9"/>'
    check_sheet(near, ParsingOptions())
    with pytest.raises(DecompressionBomb, match="sheet of the workbook"):
        check_sheet(b'<dimension ref="A1:B9"/><x:c s="1" r="a1"/><x:c r="xfd99999"/>', ParsingOptions())


# A PDF's objects, read without trust.

OPTIONS = ParsingOptions()
LINES = [(72, 700, 12, "Bees and trees")]


def test_objects_are_found_as_they_lie_in_the_file() -> None:
    """Also where a stream holds what looks like one, and where the table of objects is gone."""
    content = pdfs.one_page(pdfs.stream(b"7 0 obj <</Not/One>> endobj"), b"<</Last 1>>")
    cut = content[: content.rindex(b"xref\n")]
    assert [each.number for each in read_objects(cut)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_stream_ends_where_it_says_or_where_it_ends(line_end: bytes) -> None:
    """Lengths are often wrong."""
    for length in (b"5", b"9999", b"8 0 R"):
        head = b"1 0 obj<</Length %s>>stream%s" % (length, line_end)
        (found,) = read_objects(head + b"12345\nendstream endobj")
        assert bytes(found.packed or b"").strip() == b"12345"


def test_filters_are_undone_one_after_the_other() -> None:
    """Two of them, one in letters."""
    packed = zlib.compress(zlib.compress(b"Bees")).hex().encode() + b">"
    names = b"/Filter[/ASCIIHexDecode/FlateDecode/FlateDecode]"
    (found,) = read_objects(b"1 0 obj" + pdfs.stream(packed, names) + b"endobj")
    assert b"".join(inflate(found)) == b"Bees"


def test_a_stream_without_its_checksum_is_whole() -> None:
    """No reader minds."""
    packed = zlib.compress(b"Bees and trees")[:-4]
    contents = read_contents(pdfs.one_page(pdfs.stream(packed, b"/Filter/FlateDecode")), OPTIONS)
    assert contents.damaged == set()


def test_the_pages_in_question_are_named_in_reading_order() -> None:
    """By the page tree, not by where they lie."""
    broken = pdfs.three_pages(pdfs.stream(b"\x00broken", b"/Filter/FlateDecode"))
    assert damaged_pages(read_contents(broken, OPTIONS)) == ([2], 3)
    assert damaged_pages(read_contents(documents.pdf([LINES] * 3), OPTIONS)) == ([], 3)


def test_forms_may_draw_forms() -> None:
    """Ten levels of one form each are a drawing; forty of two each are not."""
    refuse_endless_drawing(read_contents(pdfs.doubling_forms(levels=5), OPTIONS))
    with pytest.raises(DecompressionBomb):
        refuse_endless_drawing(read_contents(pdfs.doubling_forms(levels=40), OPTIONS))


def test_resources_that_name_a_form_do_not_draw_it() -> None:
    """Writers share one list of everything among all forms."""
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</Fm 6 0 R>>>>"
    content = pdfs.one_page(pdfs.stream(pdfs.TEXT + b" /Fm Do"), pdfs.stream(b"0 0 9 9 re f", form))
    refuse_endless_drawing(read_contents(content, OPTIONS))


def test_an_honest_pdf_has_nothing_to_say() -> None:
    """No warning without a reason, encrypted or not."""
    assert check_pdf(documents.pdf([LINES] * 2), OPTIONS) == ()
    assert check_pdf(documents.pdf([LINES], password=""), OPTIONS) == ()


def test_limits_can_be_raised() -> None:
    """They are settings."""
    wide = OPTIONS.model_copy(update={"max_image_megapixels": 2000, "max_compression_ratio": 2000})
    check_pdf(pdfs.giant_page(14_400), wide)
    check_pdf(pdfs.flate_bomb(64), wide)
    with pytest.raises(DecompressionBomb, match=r"200 times its size.*parsing\.max_compression_ratio"):
        check_pdf(pdfs.flate_bomb(64), OPTIONS)


# Text in whatever encoding: read, mended or refused.

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
def test_bytes_become_the_text_they_were(content: bytes, expected: str, warning: str | None) -> None:
    """By their mark, as UTF-8, or by the look of them; what was done is said."""
    decoded = decode_text(content)
    assert decoded.text.endswith(expected)
    assert decoded.warnings == ((warning,) if warning else ())


def test_what_is_declared_is_believed_when_it_fits() -> None:
    """A Japanese page that says so needs no guess."""
    decoded = decode_text("蜂".encode("shift_jis"), "shift_jis")
    assert (decoded.text, decoded.warnings, decoded.is_as_declared) == ("蜂", (), True)
    assert decode_text("é".encode(), "no-such-encoding").text == "é"


@pytest.mark.parametrize(
    "content",
    [bytes(range(128, 256)) * 40, bytes(range(1, 256)) * 40, b"\x01\x02\x03abc" * 100, bytes(20) + b"abc"],
)
def test_bytes_that_are_no_text_are_garbled(content: bytes) -> None:
    """Control characters, or nothing in any encoding."""
    with pytest.raises(GarbledText):
        decode_text(content)


def test_depth_is_that_of_a_parser_that_closes_nothing_by_itself() -> None:
    """Void elements and closing tags of elements that are not open do not count."""
    assert depth_of("<div><p>a</p><br><img src=x></div></b><p>") == 2
    assert depth_of("<p>" * 300) == 300
    assert depth_of("<div><span></div><div></div>") == 2


def test_tags_in_scripts_and_comments_do_not_count() -> None:
    """Templates in scripts are long and close nothing."""
    tags = "<div>" * (MAX_DEPTH + 9)
    assert is_too_deep(tags)
    assert not is_too_deep(f"<script>x = '{tags}'</script><p>Bees</p><!-- {tags} -->")


def test_flattening_closes_what_html_closes_and_loses_no_word() -> None:
    """A list whose items nobody closed is a list, however long."""
    items = "".join(f"<li>item {at} &amp; <a href='#{at}'>more</a>" for at in range(500))
    flat = flattened(f"<ul>{items}</ul><p>after<script>alert(1)</script>")
    assert flat.count("<li>") == flat.count("</li>") == 500
    assert depth_of(flat) < 10
    assert 'item 499 &amp; <a href="#499">more</a>' in flat
    assert "alert" not in flat


def test_text_below_the_limit_comes_up() -> None:
    """Elements go, words stay."""
    flat = flattened("<div>" * 5000 + "bottom" + "</div>" * 5000 + "<p>after</p>")
    assert depth_of(flat) == MAX_DEPTH
    assert flat.index("bottom") < flat.index("after")


def test_quotes_within_quotes_have_an_end() -> None:
    """A hundred answers to answers are a long thread; a thousand are an attack."""
    refuse_deep_quotes("> " * 100 + "x")
    with pytest.raises(CorruptDocument, match="100 deep"):
        refuse_deep_quotes("text\n\n" + "> " * 101 + "x")


# Files made to do harm end with their exact code, or are read and say what was left out.


@pytest.mark.parametrize("crafted", CRAFTED, ids=lambda crafted: crafted.name)
def test_a_crafted_file_ends_as_it_must(read: Read, crafted: Crafted) -> None:
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


def test_each_name_is_there_once() -> None:
    """Two files of one name would be one in a folder."""
    assert len({crafted.name for crafted in CRAFTED}) == len(CRAFTED)
