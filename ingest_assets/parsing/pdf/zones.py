"""The tables and pictures of a page: what the detector saw, held against what is drawn there."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.parsing.pdf.boxes import Box, around
from ingest_assets.parsing.pdf.content import PageContent, Region
from ingest_assets.parsing.pdf.drawn import drawn_tables, has_rows_of_texts
from ingest_assets.parsing.pdf.lines import stands_beside
from ingest_assets.parsing.pdf.rules import Rule, horizontal, without_underlines
from ingest_assets.parsing.pdf.unruled import unruled_table

MIN_SCORE = 0.45
MIN_SHARED = 0.6  # of the smaller one, for two zones to be one
MAX_PAGE_SHARE = 0.92  # a picture of the whole page is a scan or a background
MAX_GROUND_SHARE = 0.7  # of the page: a drawing as large as that is the ground of everything
MIN_DRAWN = 0.1  # share of a picture that something must be drawn on
ACROSS = 0.8  # share of a table's width that a line goes along
MIN_BITMAP = 0.3  # share of a picture that a bitmap in it covers
LONG_LINE = 5  # words
MIN_COVERED = 0.2  # share of framed text's area that its long lines cover
DRAWN_SCORE = 0.5  # how certain a table is that only its lines tell of
MIN_RULES = 3  # lines across a picture of text, for it to be a table


@dataclass(frozen=True, slots=True)
class Zone:
    """A table or a picture."""

    label: str  # table, picture
    score: float
    box: Box


def zones_of(content: PageContent) -> list[Zone]:
    """Tables and pictures that do not overlap, most certain first."""
    page = Box(0, 0, content.width, content.height)
    found: list[Zone] = []
    surest_first = sorted(content.regions, key=lambda region: -region.score)
    seen = [_zone(region, content, page) for region in surest_first]
    drawn = [Zone("table", DRAWN_SCORE, box) for box in drawn_tables(content)]
    for zone in (*seen, *drawn):
        if zone and not any(_overlap(zone.box, other.box) > MIN_SHARED for other in found):
            found.append(zone)
    return found


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
    box = unruled_table(region.box, content)
    return Zone("table", region.score, box.grown(1, 1)) if box else None


def _is_drawn_on(box: Box, content: PageContent, page: Box) -> bool:
    """Something must be there to look at: a bitmap or a drawing, but no ground of the page, no link."""
    if any(page.share_in(mark) > MAX_PAGE_SHARE for mark in content.bitmaps):
        return True  # on a scan, the detector is the only witness
    words = [word for word in content.words if box.holds_middle_of(word.box)]
    drawings = [one for one in content.drawings if page.share_in(one) < MAX_GROUND_SHARE]
    marks = (*content.bitmaps, *without_underlines(drawings, words))
    inside = [mark for mark in marks if mark.share_in(box) > 0.5 or box.share_in(mark) > 0.5]
    return bool(inside) and around(inside).area >= MIN_DRAWN * box.area


def _is_framed_text(box: Box, content: PageContent) -> bool:
    """Sentences in a frame or on a coloured ground: the words of a picture are few and short."""
    if any(box.share_in(bitmap) > MIN_BITMAP for bitmap in content.bitmaps):
        return False
    own = [piece for piece in content.pieces if piece.box.share_in(box) > 0.5]
    long = [piece for piece in own if len(piece.text.split()) >= LONG_LINE]
    covered = sum(piece.box.area for piece in long)
    return len(long) >= 3 and covered >= MIN_COVERED * box.area


def _is_ruled_text(box: Box, content: PageContent) -> bool:
    """Words between lines across the whole width, and no bitmap: a table."""
    if any(bitmap.share_in(box) > 0.5 for bitmap in content.bitmaps):
        return False
    across = [rule for rule in content.rules if rule.width > 0.8 * box.width and rule.share_in(box) > 0.9]
    heights = sorted({round(rule.middle_y) for rule in across})
    words = [word.box for word in content.words if box.holds_middle_of(word.box)]
    return len(heights) >= MIN_RULES and len(words) >= 6 and _spread(words, heights)


def _spread(words: Sequence[Box], heights: Sequence[int]) -> bool:
    """Words stand in at least two of the bands between the lines."""
    bands = {sum(word.middle_y > height for height in heights) for word in words}
    return len(bands) >= 2


def _between_rules(box: Box, content: PageContent) -> Box:
    """The table without lines of running text above its first and below its last line across."""
    heights = [rule.at for rule in horizontal(content.rules) if _goes_across(rule, box)]
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
    return any(other is not piece and stands_beside(piece, other) for other in others)


def _overlap(one: Box, other: Box) -> float:
    return max(one.share_in(other), other.share_in(one))
