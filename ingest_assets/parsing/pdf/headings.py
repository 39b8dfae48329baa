"""Finds headings, by size, weight, numbering, position and the detector's label."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.furniture import Page, Place
from ingest_assets.parsing.pdf.markers import bullet_of, enumeration_of, section_number_of

MAX_LINES = 4
MAX_WORDS = 25
MIN_POINTS = 1.9
ALL = 0.8  # share of a line's letters
MIN_SERIES = 4

_SENTENCE_END = re.compile(r"[.;,:]['\")\]]?$")
_ABBREVIATION_END = re.compile(r"\b(?:etc|al|inc|ltd|co|no|vs|eds?)\.$", re.IGNORECASE)
_COMMON = re.compile(
    r"(?:abstract|introduction|references|bibliography|acknowledge?ments?|conclusions?|appendix|contents|"
    r"table of contents|summary|keywords|preface|foreword|index|glossary|discussion|results|methods?)\W*",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\(\w{1,3}\)|\w\)")
_LEADERS = re.compile(r"(?:\.\s?){4,}|\s\d{1,4}$")
_SMALL_CAPITALS = re.compile(r"csc\d|smallcaps|-sc$|sc$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Body:
    """The most frequent size and font of a document's text."""

    size: float = 0.0
    font: str = ""


def body_of(pages: Sequence[Page]) -> Body:
    """Return size and font of most letters of the running text."""
    letters: Counter[tuple[float, str]] = Counter()
    for _, blocks in pages:
        for block in blocks:
            if block.label in ("text", "list_item"):
                for line in block.lines:
                    letters[round(line.size, 1), line.font] += len(line.text)
    return Body(*max(letters, key=lambda key: letters[key])) if letters else Body()


def headings_of(pages: Sequence[Page], furniture: set[Place], body: Body) -> set[Place]:
    """Return the blocks that are headings, among those that are not page furniture."""
    headings: set[Place] = set()
    for number, (_, blocks) in enumerate(pages):
        candidates = {i: block for i, block in enumerate(blocks) if (number, i) not in furniture}
        for i, block in candidates.items():
            if heading_score(block, list(candidates.values()), body, is_first_page=number == 0) >= MIN_POINTS:
                headings.add((number, i))
    return headings


def heading_score(block: Block, page: Sequence[Block], body: Body, *, is_first_page: bool) -> float:
    """Return how much a block looks like a heading; it is one from `MIN_POINTS`."""
    text, words = block.text.strip(), block.text.split()
    if not _can_be(block, words):
        return 0.0
    bold = is_bold(block)
    name = text[len(section_number_of(text)) :].lstrip()
    named = _number_points(text) + 1.0 * is_in_capitals(block) + 1.0 * bool(_COMMON.fullmatch(name))
    title = 1.5 * block.vote("title")
    size = _size_points(block, body)
    if is_in_capitals(block) and named > 1.0:
        size = max(size, 0.0)  # small capitals are small; small print has neither number nor common name
    if is_first_page and not (bold or named or title > 0.75) and block.size < max(one.size for one in page):
        size = min(size, 0.5)  # names of authors, not headings
    score = (
        size
        + 2.0 * bold
        + 0.75 * all(line.style.italic >= ALL for line in block.lines)
        + title
        + named
        + 0.5 * _is_title_case(words)
        - _sentence_points(block, text, words)
    )
    if score < MIN_POINTS - 1.0:
        return score  # its surroundings cannot add enough
    score += (1.0 if section_number_of(text) else 0.75) * _opens_text(block, page)
    return score - 2.0 * _is_in_a_series(block, page)


def is_bold(block: Block) -> bool:
    """True if all lines are bold."""
    return all(line.style.bold >= ALL for line in block.lines)


def _can_be(block: Block, words: Sequence[str]) -> bool:
    text = block.text
    letters = sum(letter.isalpha() for letter in text)
    return bool(
        block.label in ("text", "list_item")
        and len(block.lines) <= MAX_LINES
        and 0 < len(words) <= MAX_WORDS
        and letters >= 3
        and not bullet_of(text)
        and letters > 0.5 * len(text.replace(" ", ""))
    )


def _size_points(block: Block, body: Body) -> float:
    """Score the size; sizes of different font families are only roughly comparable."""
    ratio = block.size / (body.size or 1)
    if _family(block.lines[0].font) != _family(body.font):
        return 2.0 * (ratio >= 1.3) + 1.0 * (1.15 <= ratio < 1.3) - 2.0 * (ratio < 0.75)
    return 2.0 * (ratio >= 1.15) + 1.0 * (1.06 <= ratio < 1.15) - 2.0 * (ratio < 0.88)


def _family(font: str) -> str:
    """Return a font's name without subset, style and design size."""
    name = re.sub(r"^/?(?:[A-Z]{6}\+)?", "", font)
    name = re.sub(r"(?<=[a-z])(?:PS)?MT$", "", re.split(r"[-,]", name)[0])
    return re.sub(r"^(cm|sf|ec|lm)\w*", r"\1", re.sub(r"\d+$", "", name), flags=re.IGNORECASE).lower()[:8]


def _number_points(text: str) -> float:
    number = section_number_of(text)
    if not number:
        return 0.0
    if re.fullmatch(r"[A-Z]\.?", number):
        return 0.5  # may be an initial
    return 1.5 if re.search(r"\w[.\-]\d", number) or len(number) > 4 else 1.0


def is_in_capitals(block: Block) -> bool:
    """True if all letters are capitals or small capitals."""
    letters = [letter for letter in block.text if letter.isalpha()]
    if len(letters) >= 4 and sum(letter.isupper() for letter in letters) > 0.9 * len(letters):
        return True
    return all(_SMALL_CAPITALS.search(line.font) for line in block.lines)


def _is_title_case(words: Sequence[str]) -> bool:
    long = [word for word in words if len(word) > 3 and word[0].isalpha()]
    return len(long) >= 2 and all(word[0].isupper() for word in long)


def _opens_text(block: Block, page: Sequence[Block]) -> bool:
    """True if there is more space above than below, and text follows."""
    below = [one for one in page if one.box.top >= block.box.bottom - 1 and _same_column(one, block)]
    after = min(below, key=lambda one: one.box.top, default=None)
    if after is None or after.label not in ("text", "list_item", "code", "formula"):
        return False
    if enumeration_of(block.text) and enumeration_of(after.text):
        return False  # items of a list
    gap = after.box.top - block.box.bottom
    above = [
        one.box.bottom for one in page if one.box.bottom <= block.box.top + 1 and _same_column(one, block)
    ]
    space = block.box.top - max(above) if above else 4 * block.size
    return gap < 2.5 * block.size and space > 1.1 * gap and space > 0.8 * block.size


def _is_surely_numbered(block: Block) -> bool:
    """True for a number such as `2.1`, or any number if the detector agrees."""
    return _number_points(block.text.strip()) > 1 or block.vote("title") > 0.7


def _is_in_a_series(block: Block, page: Sequence[Block]) -> bool:
    """True for one of several consecutive blocks that look the same: a list of names, not headings."""
    if section_number_of(block.text)[:1].isdigit():
        return False
    same = [one for one in page if one is block or (_looks_like(one, block) and _same_column(one, block))]
    same.sort(key=lambda one: one.box.top)
    i = next(i for i, one in enumerate(same) if one is block)
    first, last = i, i
    while first > 0 and _is_close(same[first - 1], same[first]):
        first -= 1
    while last + 1 < len(same) and _is_close(same[last], same[last + 1]):
        last += 1
    return last - first + 1 >= MIN_SERIES


def _looks_like(one: Block, other: Block) -> bool:
    if not one.lines or len(one.lines) > MAX_LINES or one.lines[0].font != other.lines[0].font:
        return False
    if is_in_capitals(one) != is_in_capitals(other):
        return False
    return abs(one.size - other.size) < 0.1 * other.size


def _is_close(upper: Block, lower: Block) -> bool:
    return lower.box.top - upper.box.bottom < 1.5 * lower.size


def _same_column(one: Block, other: Block) -> bool:
    return one.box.shared_width(other.box) > 0


def _sentence_points(block: Block, text: str, words: Sequence[str]) -> float:
    is_sentence = _SENTENCE_END.search(text) and not _ABBREVIATION_END.search(text)
    first = text[len(section_number_of(text)) :].lstrip()[:1]
    return (
        2.0 * bool(is_sentence)
        + (1.0 if _is_surely_numbered(block) else 2.0) * (first.islower() and not is_in_capitals(block))
        + 1.5 * bool(_ITEM.match(text))
        + 1.0 * (len(words) > 12)
        + 1.0 * (len(block.lines) > 2)
    )
