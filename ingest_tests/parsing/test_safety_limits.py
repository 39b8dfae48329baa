"""Limits are settings: each can be raised, and none is part of what a document reads as."""

from collections.abc import Mapping
from typing import Any

import pytest

from ingest_assets.parsing.errors import DecompressionBomb, TooManyPages
from ingest_assets.parsing.guard import inspect
from ingest_assets.parsing.guard.archives import check_sheet
from ingest_assets.parsing.guard.images import page_dpi
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.stages.doctags import DoctagsStage, unread_by
from ingest_tests.parsing.hostile import archives, images, markup

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
