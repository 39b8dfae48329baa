"""What is judged: a document's body in reading order, as the chunker sees it, and what its rows say."""

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
class Reading:
    """One document as it is judged."""

    blocks: tuple[Block, ...]
    title: str | None = None
    pages: int = 0
    mime: str = ""
    address: str = ""  # its URL, or its id where it has none
    source: str = ""
    last_modified: str | None = None

    @cached_property
    def text(self) -> str:
        """The body, one block a line."""
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


def read_rows(doctags: Mapping[str, Any], facts: Mapping[str, Any]) -> Reading:
    """A document from its row of doctags and what else is known of it."""
    return Reading(
        blocks=tuple(blocks_of(json.loads(doctags["document"]))),
        title=doctags["title"],
        pages=doctags["pages"],
        mime=facts["mime"],
        address=facts["address"],
        source=facts["source"],
        last_modified=facts["last_modified"],
    )


def blocks_of(document: Mapping[str, Any]) -> Iterator[Block]:
    """The blocks of a Docling document's JSON: neither headers and footers nor text inside pictures."""
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
    """One block of a paragraph's pieces."""
    links = tuple(item["text"] for item in items if item.get("hyperlink") and item.get("text"))
    return Block(" ".join(item.get("text") or "" for item in items), label, links)


def _table_rows(cells: list[dict[str, Any]]) -> Iterator[Block]:
    """One block a row; a rich cell's content follows as items of its own."""
    rows: dict[int, list[str]] = {}
    for cell in cells:
        if cell.get("text") and "ref" not in cell:
            rows.setdefault(cell.get("start_row_offset_idx", 0), []).append(cell["text"])
    return (Block("\t".join(texts), TABLE_ROW) for texts in rows.values())


def _walk(document: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str | None, str | None]]:
    """Items of the body in reading order, each with the inline group it is a piece of and that one's label.

    The same items as Docling's `iterate_items` gives, without building its document.
    """
    waiting: list[tuple[dict[str, Any], str | None, str | None]] = [(document["body"], None, None)]
    seen: set[str] = set()
    while waiting:
        item, paragraph, label = waiting.pop()
        kind = item.get("self_ref", "").split("/")[1:2]
        if kind not in (["body"], ["groups"]) and item.get("content_layer", "body") == "body":
            yield item, paragraph, label
        if item.get("label") == "inline":
            paragraph = item["self_ref"]
            # A list item or heading with inline pieces has no text itself: the pieces are what it says.
            parent = item.get("parent", {}).get("$ref", "")
            label = _resolved(document, parent).get("label") if parent.startswith("#/texts/") else None
        allowed = {ref["$ref"] for ref in item.get("captions", ())} if kind == ["pictures"] else None
        children = []
        for reference in item.get("children", ()):
            at = reference["$ref"]
            if at not in seen and (allowed is None or at in allowed):
                seen.add(at)
                children.append((_resolved(document, at), paragraph, label))
        waiting += reversed(children)


def _resolved(document: Mapping[str, Any], reference: str) -> dict[str, Any]:
    _, collection, number = reference.split("/")
    item: dict[str, Any] = document[collection][int(number)]
    return item


# Texts made equal where they say the same, and counted by what they say.

# Control characters that are whitespace too, such as tab, part words and count as such.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_ASCII_OTHERS = bytes(code for code in range(128) if not chr(code).isalnum())
# Scripts that put no spaces between words.
_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_UNSPACED = regex.compile(f"[{_SCRIPTS}]")
# Marks belong to words: the vowels of Devanagari are marks.
_WORDS = regex.compile(rf"(?V1)[{_SCRIPTS}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{_SCRIPTS}]]+")


def normal_text(text: str) -> str:
    """Without control characters, in lower case and NFC, with single spaces."""
    spaced = " ".join(text.split())
    if not spaced.isprintable():  # what is printable holds no control character, and is found out quickly
        spaced = " ".join(_CONTROLS.sub("", spaced).split())
    return unicodedata.normalize("NFC", spaced.lower())


def plain(text: str) -> str:
    """As the phrases of pages are written down here."""
    return normal_text(text).replace("’", "'")


def as_label(plain_text: str) -> str:
    """As labels are written down: without what stands around a word on a button or in a form."""
    return plain_text.strip(" :：*?!.…›»«‹>→|·•-–—()[]")


def text_hash(text: str) -> str:
    """Equal for texts that differ in case, whitespace and control characters only."""
    return sha256_text(normal_text(text))


def meaningful_chars(text: str) -> int:
    """Letters and digits."""
    if text.isascii():
        return len(text.encode("ascii").translate(None, _ASCII_OTHERS))
    return sum(map(str.isalnum, text))


def words_of(text: str) -> list[str]:
    """Words in order; of scripts without spaces, single characters."""
    return _WORDS.findall(text)


def different_words(text: str) -> int:
    """Words of two characters or more, each counted once; without spaces, three characters are two words."""
    words = set(words_of(text.lower()))
    characters = sum(bool(_UNSPACED.match(word)) for word in words)
    return sum(len(word) > 1 for word in words) + characters * 2 // 3


def word_count(text: str) -> int:
    """About how many words a text has, quickly: what spaces part, and pairs of characters where none do."""
    spaced = len(text.split())
    return spaced if text.isascii() else spaced + len(_UNSPACED.findall(text)) // 2


def samples(text: str, parts: int, part_chars: int) -> list[str]:
    """All of a short text; of a long one parts from its start to its end, the same every time."""
    if len(text) <= parts * part_chars:
        return [text]
    step = (len(text) - part_chars) // (parts - 1)
    return [text[at * step : at * step + part_chars] for at in range(parts)]
