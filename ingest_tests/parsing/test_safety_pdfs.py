"""A PDF's objects, read without trust."""

import zlib

import pytest

from ingest_assets.parsing.errors import DecompressionBomb
from ingest_assets.parsing.guard.pdf import check_pdf
from ingest_assets.parsing.guard.pdf_objects import (
    damaged_pages,
    inflate,
    read_contents,
    read_objects,
    refuse_endless_drawing,
)
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.parsing import documents
from ingest_tests.parsing.hostile import pdfs

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
