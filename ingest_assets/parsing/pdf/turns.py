"""Pages whose text is not upright: sheets that were scanned or set sideways.

A turn is the angle of the text, counter-clockwise as in Docling: 0 upright, 90 from bottom to top, 180 upside
down, 270 from top to bottom.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import PageContent
from ingest_assets.parsing.pdf.lines import Word

TO_UPRIGHT = {90: -90, 180: 180, 270: 90}  # rotation with Pillow that makes such text upright
MIN_SHARE = 0.6  # of a page's letters that must have a turn, for it to be the page's


def main_turn(pieces: Iterable[tuple[int, str]]) -> int:
    """Return the turn of most letters, given turns and texts; 0 if too few letters share it."""
    letters: Counter[int] = Counter()
    for turn, text in pieces:
        letters[turn] += len(text)
    turn, count = max(letters.items(), key=lambda item: item[1], default=(0, 0))
    return turn if count >= MIN_SHARE * letters.total() else 0


def rotate_upright(box: Box, turn: int, width: float, height: float) -> Box:
    """Convert a box from a page of this size to the upright page."""
    if turn == 90:
        return Box(height - box.bottom, box.left, height - box.top, box.right)
    if turn == 180:
        return Box(width - box.right, height - box.bottom, width - box.left, height - box.top)
    if turn == 270:
        return Box(box.top, width - box.right, box.bottom, width - box.left)
    return box


def rotate_back(box: Box, turn: int, width: float, height: float) -> Box:
    """Convert a box from the upright page to the original page of this size."""
    if turn == 90:
        return Box(box.top, height - box.right, box.bottom, height - box.left)
    if turn == 270:
        return Box(width - box.bottom, box.left, width - box.top, box.right)
    return rotate_upright(box, turn, width, height)


def upright_content(content: PageContent, turn: int) -> PageContent:
    """Return the page's content rotated so that its text is upright."""
    if turn == 0:
        return content
    size = (content.width, content.height)

    def rotated(boxes: Iterable[Box]) -> tuple[Box, ...]:
        return tuple(rotate_upright(box, turn, *size) for box in boxes)

    def rotated_words(words: Iterable[Word]) -> tuple[Word, ...]:
        return tuple(
            replace(word, box=rotate_upright(word.box, turn, *size), turn=(word.turn - turn) % 360)
            for word in words
        )

    sideways = turn in (90, 270)
    return PageContent(
        width=content.height if sideways else content.width,
        height=content.width if sideways else content.height,
        pieces=rotated_words(content.pieces),
        words=rotated_words(content.words),
        rules=rotated(content.rules),
        drawings=rotated(content.drawings),
        bitmaps=rotated(content.bitmaps),
        regions=tuple(
            replace(region, box=rotate_upright(region.box, turn, *size)) for region in content.regions
        ),
    )
