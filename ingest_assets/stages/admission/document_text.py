"""The text that is judged: a document's body in reading order, as the chunker sees it, and its metadata."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import regex

from ingest_assets.core.identity import sha256_text

HEADINGS = frozenset({"title", "section_header", "field_heading"})
TABLE_ROW = "table"


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list item or row of a table; inline pieces of a paragraph are one block."""

    text: str
    label: str = "text"  # Docling's label
    links: tuple[str, ...] = ()  # the texts inside links


@dataclass(frozen=True)
class DocumentText:
    """The text and metadata of one document."""

    blocks: tuple[Block, ...]
    title: str | None = None
    pages: int = 0
    mime: str = ""
    address: str = ""  # its URL, or its id if it has none
    source: str = ""
    last_modified: str | None = None

    @cached_property
    def text(self) -> str:
        """The body, one block per line."""
        return "\n".join(block.text for block in self.blocks)

    @cached_property
    def chars(self) -> int:
        """Characters that are not whitespace, as the doctags row counts them."""
        return len("".join(self.text.split()))

    @cached_property
    def headings(self) -> tuple[str, ...]:
        return tuple(block.text for block in self.blocks if block.label in HEADINGS and block.text.strip())

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The texts inside links."""
        return tuple(link for block in self.blocks for link in block.links)


def read_document_text(doctags: Mapping[str, Any], facts: Mapping[str, Any]) -> DocumentText:
    """Return a document's text from its row of doctags, with its other facts."""
    return DocumentText(
        blocks=tuple(blocks_of(json.loads(doctags["document"]))),
        title=doctags["title"],
        pages=doctags["pages"],
        mime=facts["mime"],
        address=facts["address"],
        source=facts["source"],
        last_modified=facts["last_modified"],
    )


def blocks_of(document: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the blocks of a Docling document's JSON, without headers, footers and text inside pictures."""
    pending: list[dict[str, Any]] = []
    inline: str | None = None
    label = ""
    for item, paragraph, paragraph_label in _walk(document):
        if pending and paragraph != inline:
            yield _joined(pending, label)
            pending = []
        inline, label = paragraph, paragraph_label or item.get("label", "text")
        if "table_cells" in item.get("data", ()):
            yield from _table_rows(item["data"]["table_cells"])
        elif paragraph is not None:
            pending.append(item)
        elif item.get("text"):
            yield _joined([item], label)
    if pending:
        yield _joined(pending, label)


def _joined(items: list[dict[str, Any]], label: str) -> Block:
    """Join the pieces of a paragraph."""
    links = tuple(item["text"] for item in items if item.get("hyperlink") and item.get("text"))
    return Block(" ".join(item.get("text") or "" for item in items), label, links)


def _table_rows(cells: list[dict[str, Any]]) -> Iterator[Block]:
    """Yield a block per row. The contents of rich cells are separate items."""
    rows: dict[int, list[str]] = {}
    for cell in cells:
        if cell.get("text") and "ref" not in cell:
            rows.setdefault(cell.get("start_row_offset_idx", 0), []).append(cell["text"])
    return (Block("\t".join(texts), TABLE_ROW) for texts in rows.values())


def _walk(document: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str | None, str | None]]:
    """Yield the body's items in reading order, each with its inline group (if any) and that group's label.

    These are the items of Docling's `iterate_items`, without building a Docling document.
    """
    waiting: list[tuple[dict[str, Any], str | None, str | None]] = [(document["body"], None, None)]
    visited: set[str] = set()
    while waiting:
        item, paragraph, label = waiting.pop()
        kind = item.get("self_ref", "").split("/")[1:2]
        if kind not in (["body"], ["groups"]) and item.get("content_layer", "body") == "body":
            yield item, paragraph, label
        if item.get("label") == "inline":
            paragraph = item["self_ref"]
            # A list item or heading with inline pieces has no text itself: its text is in the pieces.
            parent = item.get("parent", {}).get("$ref", "")
            label = _resolved(document, parent).get("label") if parent.startswith("#/texts/") else None
        allowed = {caption["$ref"] for caption in item.get("captions", ())} if kind == ["pictures"] else None
        children = []
        for reference in item.get("children", ()):
            ref = reference["$ref"]
            if ref not in visited and (allowed is None or ref in allowed):
                visited.add(ref)
                children.append((_resolved(document, ref), paragraph, label))
        waiting += reversed(children)


def _resolved(document: Mapping[str, Any], reference: str) -> dict[str, Any]:
    _, collection, number = reference.split("/")
    item: dict[str, Any] = document[collection][int(number)]
    return item


# Normalizing and counting of text.

# Without the control characters that are also whitespace, such as tab: those separate words.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_ASCII_OTHERS = bytes(code for code in range(128) if not chr(code).isalnum())
# Scripts without spaces between words.
_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_UNSPACED = regex.compile(f"[{_SCRIPTS}]")
# Marks belong to words: the vowels of Devanagari are marks.
_WORDS = regex.compile(rf"(?V1)[{_SCRIPTS}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{_SCRIPTS}]]+")


def normal_text(text: str) -> str:
    """Return a text in lower case and NFC, with single spaces and without control characters."""
    spaced = " ".join(text.split())
    if not spaced.isprintable():  # a quick test: printable text has no control characters
        spaced = " ".join(_CONTROLS.sub("", spaced).split())
    return unicodedata.normalize("NFC", spaced.lower())


def plain(text: str) -> str:
    """Return a text in the form of the phrases in `phrases.toml`."""
    return normal_text(text).replace("’", "'")


def label_form(plain_text: str) -> str:
    """Return a text in the form of the labels in `phrases.toml`: without the signs around it."""
    return plain_text.strip(" :：*?!.…›»«‹>→|·•-–—()[]")


def text_hash(text: str) -> str:
    """Return a hash that is equal for texts that differ only in case, whitespace and control characters."""
    return sha256_text(normal_text(text))


def meaningful_chars(text: str) -> int:
    """Count letters and digits."""
    if text.isascii():
        return len(text.encode("ascii").translate(None, _ASCII_OTHERS))
    return sum(map(str.isalnum, text))


def words_of(text: str) -> list[str]:
    """Return the words in order; single characters in scripts without spaces."""
    return _WORDS.findall(text)


def different_words(text: str) -> int:
    """Count different words of two or more characters; three characters without spaces are two words."""
    words = set(words_of(text.lower()))
    characters = sum(bool(_UNSPACED.match(word)) for word in words)
    return sum(len(word) > 1 for word in words) + characters * 2 // 3


def word_count(text: str) -> int:
    """Estimate the number of words quickly, by spaces, and by pairs of characters in scripts without them."""
    spaced = len(text.split())
    return spaced if text.isascii() else spaced + len(_UNSPACED.findall(text)) // 2


def samples(text: str, parts: int, part_chars: int) -> list[str]:
    """Return a short text, or evenly spaced parts of a long one, the same every time."""
    if len(text) <= parts * part_chars:
        return [text]
    step = (len(text) - part_chars) // (parts - 1)
    return [text[number * step : number * step + part_chars] for number in range(parts)]
