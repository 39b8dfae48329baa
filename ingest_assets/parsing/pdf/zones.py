"""The tables and pictures of a page: the detector's regions, checked against drawings and words."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.content import PageContent, Region
from ingest_assets.parsing.pdf.lines import is_beside
from ingest_assets.parsing.pdf.ruled_tables import find_ruled_tables, has_rows_of_texts
from ingest_assets.parsing.pdf.rules import Rule, horizontal_rules, without_underlines
from ingest_assets.parsing.pdf.unruled_tables import find_unruled_table

MIN_SCORE = 0.45
MIN_SHARED = 0.6  # of the smaller zone's area; two such zones are one
MAX_PAGE_SHARE = 0.92  # a picture of the whole page is a scan or a background
MAX_GROUND_SHARE = 0.7  # of the page: a larger drawing is a background
MIN_DRAWN = 0.1  # share of a picture that bitmaps and drawings must cover
ACROSS = 0.8  # share of a table's width that a line across it covers
MIN_BITMAP = 0.3  # share of framed text that a bitmap may cover
LONG_LINE = 5  # words
MIN_COVERED = 0.2  # share of framed text that its long lines cover
DRAWN_SCORE = 0.5  # of a table that only drawn lines indicate
MIN_RULES = 3  # lines across a figure that make it a table


@dataclass(frozen=True, slots=True)
class Zone:
    """A table or a picture."""

    label: str  # table, picture
    score: float
    box: Box


def zones_of(content: PageContent) -> list[Zone]:
    """Return tables and pictures that do not overlap, detected ones first, by score."""
    page = Box(0, 0, content.width, content.height)
    zones: list[Zone] = []
    surest_first = sorted(content.regions, key=lambda region: -region.score)
    detected = [_zone(region, content, page) for region in surest_first]
    drawn = [Zone("table", DRAWN_SCORE, box) for box in find_ruled_tables(content)]
    for zone in (*detected, *drawn):
        if zone and not any(_overlap(zone.box, other.box) > MIN_SHARED for other in zones):
            zones.append(zone)
    return zones


def _zone(region: Region, content: PageContent, page: Box) -> Zone | None:
    if region.label not in ("table", "figure"):
        return None
    if region.score >= MIN_SCORE:
        if region.label == "table" and has_rows_of_texts(region.box, content):
            return Zone("table", region.score, _between_rules(region.box, content))
        if region.label == "figure" and region.box.area <= MAX_PAGE_SHARE * page.area:
            if _is_ruled_text(region.box, content):
                return Zone("table", region.score, _between_rules(region.box, content))
            if _is_drawn_on(region.box, content, page) and not _is_framed_text(region.box, content):
                return Zone("picture", region.score, region.box)
    elif region.label == "figure":
        return None
    box = find_unruled_table(region.box, content)
    return Zone("table", region.score, box.expanded(1, 1)) if box else None


def _is_drawn_on(box: Box, content: PageContent, page: Box) -> bool:
    """True if a picture has a bitmap or a drawing that is no background of the page and no underline."""
    if any(page.share_in(bitmap) > MAX_PAGE_SHARE for bitmap in content.bitmaps):
        return True  # on a scan, there is only the detector
    words = [word for word in content.words if box.contains_middle_of(word.box)]
    drawings = [one for one in content.drawings if page.share_in(one) < MAX_GROUND_SHARE]
    graphics = (*content.bitmaps, *without_underlines(drawings, words))
    inside = [g for g in graphics if g.share_in(box) > 0.5 or box.share_in(g) > 0.5]
    return bool(inside) and bounding_box(inside).area >= MIN_DRAWN * box.area


def _is_framed_text(box: Box, content: PageContent) -> bool:
    """True for sentences in a frame or on a coloured background; texts of pictures are few and short."""
    if any(box.share_in(bitmap) > MIN_BITMAP for bitmap in content.bitmaps):
        return False
    pieces = [piece for piece in content.pieces if piece.box.share_in(box) > 0.5]
    long = [piece for piece in pieces if len(piece.text.split()) >= LONG_LINE]
    covered = sum(piece.box.area for piece in long)
    return len(long) >= 3 and covered >= MIN_COVERED * box.area


def _is_ruled_text(box: Box, content: PageContent) -> bool:
    """True for words between lines across the whole width, without a bitmap: a table."""
    if any(bitmap.share_in(box) > 0.5 for bitmap in content.bitmaps):
        return False
    across = [rule for rule in content.rules if rule.width > 0.8 * box.width and rule.share_in(box) > 0.9]
    heights = sorted({round(rule.middle_y) for rule in across})
    words = [word.box for word in content.words if box.contains_middle_of(word.box)]
    return len(heights) >= MIN_RULES and len(words) >= 6 and _fill_several_bands(words, heights)


def _fill_several_bands(words: Sequence[Box], heights: Sequence[int]) -> bool:
    """True if words are in at least two of the bands between the lines."""
    bands = {sum(word.middle_y > height for height in heights) for word in words}
    return len(bands) >= 2


def _between_rules(box: Box, content: PageContent) -> Box:
    """Return the table's box without running text above its first and below its last line."""
    heights = [rule.at for rule in horizontal_rules(content.rules) if _goes_across(rule, box)]
    if len(heights) < 2:
        return box
    top, bottom = box.top, box.bottom
    above = [
        piece.box
        for piece in content.pieces
        if _is_inside(piece.box, box) and piece.box.bottom < heights[0] + 1
    ]
    below = [
        piece.box
        for piece in content.pieces
        if _is_inside(piece.box, box) and piece.box.top > heights[-1] - 1
    ]
    if above and not any(_has_neighbour(one, above) for one in above):
        top = heights[0] - 1
    if below and not any(_has_neighbour(one, below) for one in below):
        bottom = heights[-1] + 1
    return Box(box.left, top, box.right, bottom)


def _goes_across(rule: Rule, box: Box) -> bool:
    return rule.covers(box.left, box.right) > ACROSS and box.top - 2 <= rule.at <= box.bottom + 2


def _is_inside(piece: Box, box: Box) -> bool:
    return piece.share_in(box) > 0.5


def _has_neighbour(piece: Box, others: Sequence[Box]) -> bool:
    return any(other is not piece and is_beside(piece, other) for other in others)


def _overlap(one: Box, other: Box) -> float:
    return max(one.share_in(other), other.share_in(one))
