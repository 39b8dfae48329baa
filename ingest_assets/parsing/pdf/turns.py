"""Text that does not run from left to right along the page: sheets that were scanned or set on their side.

A turn is the angle at which text runs, counter-clockwise as Docling counts: 0 upright, 90 from bottom to top,
180 upside down, 270 from top to bottom.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import PageContent
from ingest_assets.parsing.pdf.lines import Word

TO_UPRIGHT = {90: -90, 180: 180, 270: 90}  # what Pillow must turn a picture by for such text to stand upright
MIN_SHARE = 0.6  # of a page's letters, for the page to be turned as they are


def main_turn(pieces: Iterable[tuple[int, str]]) -> int:
    """The turn that most letters of a page have, given turns and texts; 0 where they do not agree."""
    letters: Counter[int] = Counter()
    for turn, text in pieces:
        letters[turn] += len(text)
    turn, count = max(letters.items(), key=lambda item: item[1], default=(0, 0))
    return turn if count >= MIN_SHARE * letters.total() else 0


def upright(box: Box, turn: int, width: float, height: float) -> Box:
    """Where a box is once the page of this size is turned so that such text stands upright."""
    if turn == 90:
        return Box(height - box.bottom, box.left, height - box.top, box.right)
    if turn == 180:
        return Box(width - box.right, height - box.bottom, width - box.left, height - box.top)
    if turn == 270:
        return Box(box.top, width - box.right, box.bottom, width - box.left)
    return box


def turned_back(box: Box, turn: int, width: float, height: float) -> Box:
    """Where a box of the upright page is on the page as it is, whose size this is."""
    if turn == 90:
        return Box(box.top, height - box.right, box.bottom, height - box.left)
    if turn == 270:
        return Box(width - box.bottom, box.left, width - box.top, box.right)
    return upright(box, turn, width, height)


def upright_content(content: PageContent, turn: int) -> PageContent:
    """The page as it is when its text stands upright."""
    if turn == 0:
        return content
    size = (content.width, content.height)

    def moved(boxes: Iterable[Box]) -> tuple[Box, ...]:
        return tuple(upright(box, turn, *size) for box in boxes)

    def words(found: Iterable[Word]) -> tuple[Word, ...]:
        return tuple(
            replace(word, box=upright(word.box, turn, *size), turn=(word.turn - turn) % 360) for word in found
        )

    sideways = turn in (90, 270)
    return PageContent(
        width=content.height if sideways else content.width,
        height=content.width if sideways else content.height,
        pieces=words(content.pieces),
        words=words(content.words),
        rules=moved(content.rules),
        drawings=moved(content.drawings),
        bitmaps=moved(content.bitmaps),
        regions=tuple(replace(region, box=upright(region.box, turn, *size)) for region in content.regions),
    )
