"""The words, headings and tables of a Markdown text, without markup.

Both sides of a comparison are read here, so that markup (escapes, entities, emphasis, link targets, comments
such as `<!-- image -->`, padded or compact tables) does not affect the scores.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

Words = tuple[str, ...]

# A run of letters, digits and accents is a word; so is every other visible character by itself, so that
# `(nuts) .` and `(nuts).` have the same words.
_WORD = regex.compile(r"[\w\p{M}]+|[^\s\w\p{M}]")
# Some of Docling's backends write ASCII characters for these, others keep them.
_ASCII_PUNCTUATION = str.maketrans("‐‒–—―‘’‚“”„", "-----'''\"\"\"")
_INVISIBLE = regex.compile(r"\p{Cf}")  # soft hyphens, joiners, direction marks


def words_of(text: str) -> Words:
    """Return the words of plain text: entities decoded, NFKC, nothing invisible, ASCII dashes and quotes.

    Words are case-sensitive.
    """
    plain = unicodedata.normalize("NFKC", html.unescape(text)).translate(_ASCII_PUNCTUATION)
    return tuple(_WORD.findall(_INVISIBLE.sub("", plain)))


def sequence_ratio(parsed: Sequence[str], truth: Sequence[str]) -> float:
    """Return twice the length of the longest common subsequence, divided by the sum of both lengths.

    1.0 for equal sequences, 0.0 if they share nothing. Missing, additional and moved words lower it. It is
    never below `difflib.SequenceMatcher.ratio`, which approximates it.
    """
    if not parsed and not truth:
        return 1.0
    return 2 * common_length(parsed, truth) / (len(parsed) + len(truth))


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    A row of the usual table is one large integer with a bit per element (Hyyrö's bit-vector recurrence), so
    two texts of 100,000 words take seconds.
    """
    positions: dict[str, int] = {}
    for index, element in enumerate(left):
        positions[element] = positions.get(element, 0) | 1 << index
    full = (1 << len(left)) - 1
    row = full
    for element in right:
        if (matches := row & positions.get(element, 0)) != 0:
            row = ((row + matches) | (row - matches)) & full
    return len(left) - row.bit_count()


Table = tuple[tuple[str, ...], ...]  # rows of cells; a cell's words are joined by a space

_BREAKS = {"softbreak", "hardbreak"}
_INLINE_TAGS = {
    *("a", "abbr", "b", "cite", "code", "del", "em", "i", "ins", "kbd", "mark", "q", "s", "small", "span"),
    *("strong", "sub", "sup", "u"),
}
_HEADING_TAG = re.compile(r"h[1-6]")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FORMULA = re.compile(r"\$\$|\$(?=\S)([^$]*\S)\$(?!\d)")
_HEADING_IN_CELL = re.compile(r"\A#{2,6}\s")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading's words, joined by spaces, and its level (1 is the highest)."""

    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The words, headings and tables of a Markdown text, in its order."""

    words: Words
    headings: tuple[Heading, ...]
    tables: tuple[Table, ...]


class _Collector:
    """Collects words, headings and tables while a text is traversed."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.headings: list[Heading] = []
        self.tables: list[list[list[str]]] = []
        self.level = 0  # of the heading if the next text is one
        self.is_in_cell = False  # the next text is a cell's

    def add_text(self, text: str) -> None:
        """Add the text of a heading, a cell or a block."""
        words = words_of(_HEADING_IN_CELL.sub("", text) if self.is_in_cell else text)
        self.words += words
        if self.is_in_cell:
            self.tables[-1][-1].append(" ".join(words))
        elif self.level and words:
            self.headings.append(Heading(" ".join(words), self.level))
        self.level, self.is_in_cell = 0, False


def read_markdown(text: str) -> Reading:
    """Return what is compared of a Markdown text: CommonMark with tables, and HTML inside it."""
    collector = _Collector()
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"])
    for token in parser.parse(text):
        match token.type:
            case "heading_open":
                collector.level = int(token.tag[1:])
            case "table_open":
                collector.tables.append([])
            case "tr_open":
                collector.tables[-1].append([])
            case "th_open" | "td_open":
                collector.is_in_cell = True
            case "inline":
                collector.add_text(_FORMULA.sub(r"\1", "".join(_inline_parts(token.children or ()))))
            case "fence" | "code_block":
                collector.add_text(token.content)
            case "html_block":
                _Html(collector).read(token.content)
    tables = tuple(rows for table in collector.tables if (rows := tuple(tuple(row) for row in table if row)))
    return Reading(tuple(collector.words), tuple(collector.headings), tables)


def _inline_parts(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield text without emphasis, link targets and tags."""
    for token in tokens:
        if token.type in _BREAKS or (token.type == "html_inline" and token.content.startswith("<br")):
            yield " "
        elif token.type == "image":
            yield "".join(_inline_parts(token.children or ()))
        elif token.type in ("text", "text_special", "code_inline"):
            yield token.content


class _Html(HTMLParser):
    """HTML inside Markdown: its headings, tables and text."""

    def __init__(self, collector: _Collector) -> None:
        super().__init__(convert_charrefs=True)
        self._collector = collector
        self._parts: list[str] = []
        self._open_tables = 0

    def read(self, content: str) -> None:
        self.feed(_COMMENT.sub("", content))
        self.close()
        self._end_text()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _INLINE_TAGS:
            return
        self._end_text()
        if tag == "table":
            self._open_tables += 1
            self._collector.tables.append([])
        elif tag == "tr" and self._open_tables:
            self._collector.tables[-1].append([])
        elif _HEADING_TAG.fullmatch(tag):
            self._collector.level = int(tag[1:])

    def handle_endtag(self, tag: str) -> None:
        if tag in _INLINE_TAGS:
            return
        if tag in ("td", "th") and self._open_tables and self._collector.tables[-1]:
            self._collector.is_in_cell = True
        self._end_text()
        if tag == "table":
            self._open_tables = max(0, self._open_tables - 1)

    def handle_data(self, data: str) -> None:
        self._parts.append(data)

    def _end_text(self) -> None:
        text = "".join(self._parts)
        self._parts.clear()
        if text.strip() or self._collector.is_in_cell:
            self._collector.add_text(text)
