"""What a Markdown text says: its words, headings and tables, without the marks that say so.

Both sides of a comparison pass through here, so that how a text is marked (escapes, entities, emphasis, link
targets, comments such as `<!-- image -->`, padded or compact tables) counts neither for nor against anyone.
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

# Letters, digits and their accents in a row are a word; every other visible character is one of its own, so
# that `(nuts) .` and `(nuts).` are the same words.
_WORD = regex.compile(r"[\w\p{M}]+|[^\s\w\p{M}]")
# Some of Docling's readers write typewriter marks for these, others leave them as they are.
_TYPEWRITER = str.maketrans("‐‒–—―‘’‚“”„", "-----'''\"\"\"")
_INVISIBLE = regex.compile(r"\p{Cf}")  # soft hyphens, joiners, direction marks


def words_of(text: str) -> Words:
    """The words of plain text: entities decoded, NFKC, no invisible characters, one kind of dash and quote.

    Case counts, and so does every other character.
    """
    plain = unicodedata.normalize("NFKC", html.unescape(text)).translate(_TYPEWRITER)
    return tuple(_WORD.findall(_INVISIBLE.sub("", plain)))


def sequence_ratio(ours: Sequence[str], truth: Sequence[str]) -> float:
    """How alike two sequences are: twice their longest common subsequence, over the sum of their lengths.

    1.0 for equal sequences, 0.0 for such that share nothing; a missing, an additional and a moved word all
    cost. It is what `difflib.SequenceMatcher.ratio` approximates, and never below it.
    """
    if not ours and not truth:
        return 1.0
    return 2 * common_length(ours, truth) / (len(ours) + len(truth))


def common_length(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    One row of the usual table is one large integer, a bit per element (Hyyrö's bit-vector recurrence), so
    that 100,000 words against 100,000 take seconds.
    """
    places: dict[str, int] = {}
    for at, element in enumerate(one):
        places[element] = places.get(element, 0) | 1 << at
    full = (1 << len(one)) - 1
    row = full
    for element in other:
        if (here := row & places.get(element, 0)) != 0:
            row = ((row + here) | (row - here)) & full
    return len(one) - row.bit_count()


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
    """A heading's words, joined by a space, and its level from 1 on."""

    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What one Markdown text says, in its order."""

    words: Words
    headings: tuple[Heading, ...]
    tables: tuple[Table, ...]


class _Collector:
    """Gathers what a text says while it is walked through."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.headings: list[Heading] = []
        self.tables: list[list[list[str]]] = []
        self.level = 0  # of the heading whose text comes next
        self.is_in_cell = False  # the next text is a cell's

    def text(self, text: str) -> None:
        """A heading, a cell or a block of text."""
        words = words_of(_HEADING_IN_CELL.sub("", text) if self.is_in_cell else text)
        self.words += words
        if self.is_in_cell:
            self.tables[-1][-1].append(" ".join(words))
        elif self.level and words:
            self.headings.append(Heading(" ".join(words), self.level))
        self.level, self.is_in_cell = 0, False


def read_markdown(text: str) -> Reading:
    """Everything that is compared of a Markdown text (CommonMark with tables; HTML inside it is read too)."""
    found = _Collector()
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"])
    for token in parser.parse(text):
        match token.type:
            case "heading_open":
                found.level = int(token.tag[1:])
            case "table_open":
                found.tables.append([])
            case "tr_open":
                found.tables[-1].append([])
            case "th_open" | "td_open":
                found.is_in_cell = True
            case "inline":
                found.text(_FORMULA.sub(r"\1", "".join(_inline_parts(token.children or ()))))
            case "fence" | "code_block":
                found.text(token.content)
            case "html_block":
                _Html(found).read(token.content)
    tables = (tuple(tuple(row) for row in table if row) for table in found.tables)
    return Reading(tuple(found.words), tuple(found.headings), tuple(table for table in tables if table))


def _inline_parts(tokens: Sequence[Token]) -> Iterator[str]:
    """Text without marks: emphasis, link targets and tags fall away, what they stand around stays."""
    for token in tokens:
        if token.type in _BREAKS or (token.type == "html_inline" and token.content.startswith("<br")):
            yield " "
        elif token.type == "image":
            yield "".join(_inline_parts(token.children or ()))
        elif token.type in ("text", "text_special", "code_inline"):
            yield token.content


class _Html(HTMLParser):
    """HTML inside Markdown: its headings, tables and text."""

    def __init__(self, found: _Collector) -> None:
        super().__init__(convert_charrefs=True)
        self._found = found
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
            self._found.tables.append([])
        elif tag == "tr" and self._open_tables:
            self._found.tables[-1].append([])
        elif _HEADING_TAG.fullmatch(tag):
            self._found.level = int(tag[1:])

    def handle_endtag(self, tag: str) -> None:
        if tag in _INLINE_TAGS:
            return
        if tag in ("td", "th") and self._open_tables and self._found.tables[-1]:
            self._found.is_in_cell = True
        self._end_text()
        if tag == "table":
            self._open_tables = max(0, self._open_tables - 1)

    def handle_data(self, data: str) -> None:
        self._parts.append(data)

    def _end_text(self) -> None:
        text = "".join(self._parts)
        self._parts.clear()
        if text.strip() or self._found.is_in_cell:
            self._found.text(text)
