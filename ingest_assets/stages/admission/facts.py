"""Measurements for the rules: a document's characters, lines and sentences, counted once."""

import functools
import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Literal
from urllib.parse import urlsplit

from ingest_assets.stages.admission.document_text import (
    HEADINGS,
    TABLE_ROW,
    Block,
    DocumentText,
    different_words,
    label_form,
    meaningful_chars,
    plain,
    word_count,
)
from ingest_assets.stages.admission.language import Detected, detect_language
from ingest_assets.stages.admission.phrases import DATE_LABELS

CharacterKind = Literal["letter", "digit", "symbol", "corrupt", "other"]

# Running text has enough words for a sentence; labels, menu entries and headings do not.
RUNNING_WORDS = 8
# A block is a link if almost all of it is in links; there can be a bullet or a full stop next to them.
_LINK_SHARE = 0.8
# By the first letter of a character's Unicode category; in many scripts, vowels are marks.
_KINDS: dict[str, CharacterKind] = {"L": "letter", "M": "letter", "N": "digit", "P": "symbol", "S": "symbol"}
_SENTENCE_ENDS = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_LONG_LINE = 120
_SUBSTANCE = frozenset({TABLE_ROW, "code", "formula", "field_value", "caption", "footnote"})


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, or a shorter line."""

    text: str
    plain: str  # in the form of phrases
    label: str  # in the form of labels
    words: int
    chars: int  # letters and digits
    is_link: bool
    is_heading: bool  # a short heading; a long one counts as text


@dataclass(frozen=True)
class Facts:
    """A document with its measurements."""

    document: DocumentText

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each character occurs, without whitespace."""
        counts = Counter(self.document.text)
        for character in [character for character in counts if character.isspace()]:
            del counts[character]
        return counts

    @cached_property
    def plain_text(self) -> str:
        """The text in the form of phrases; slow, so only short texts need it."""
        return plain(self.document.text)

    @cached_property
    def kinds(self) -> Counter[CharacterKind]:
        kinds: Counter[CharacterKind] = Counter()
        for character, count in self.counts.items():
            kinds[kind_of(character)] += count
        return kinds

    @cached_property
    def visible(self) -> int:
        """Characters that are not whitespace."""
        return sum(self.counts.values())

    @cached_property
    def meaningful(self) -> int:
        """Letters and digits."""
        return sum(count for character, count in self.counts.items() if character.isalnum())

    @cached_property
    def entropy(self) -> float:
        """Bits per character."""
        return entropy_of(self.counts)

    @cached_property
    def detected(self) -> Detected:
        return detect_language(self.document.blocks)

    @cached_property
    def different_words(self) -> int:
        return different_words(self.document.text)

    @cached_property
    def text_outside_tables(self) -> str:
        """The text outside tables, code and formulas."""
        return "\n".join(
            b.text for b in self.document.blocks if b.label not in (TABLE_ROW, "code", "formula")
        )

    @cached_property
    def substance(self) -> int:
        """Letters and digits in running text, tables, code and captions, outside links."""
        return sum(meaningful_chars(block.text) for block in self.document.blocks if has_substance(block))

    @cached_property
    def linked(self) -> int:
        """Letters and digits inside links."""
        return sum(map(meaningful_chars, self.document.links))

    @cached_property
    def lines(self) -> Counter[str]:
        """Lines outside tables and how often each occurs; long lines are split into sentences."""
        lines: Counter[str] = Counter()
        for block in self.document.blocks:
            if block.label == TABLE_ROW:
                continue
            for line in block.text.splitlines():
                parts = line.replace("。", ". ").split(". ") if len(line) > _LONG_LINE else [line]
                lines.update(filter(None, (" ".join(part.split()).lower() for part in parts)))
        return lines

    @cached_property
    def repeated_share(self) -> float:
        """Share of the text in lines that occurred before."""
        total = sum(len(line) * count for line, count in self.lines.items())
        return 1 - sum(map(len, self.lines)) / total if total else 0.0

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The text in sentences and short lines; slow for long texts, so only short texts need it."""
        units: list[Unit] = []
        for block in self.document.blocks:
            link, heading = is_link(block), block.label in HEADINGS and word_count(block.text) < RUNNING_WORDS
            lines = [block.text] if block.label == TABLE_ROW else block.text.splitlines()
            for part in (part for line in lines for part in _SENTENCE_ENDS.split(line)):
                if chars := meaningful_chars(part):
                    text = plain(part)
                    label, words = label_form(text), word_count(text)
                    units.append(Unit(part.strip(), text, label, words, chars, link, heading))
        return tuple(units)

    def share(self, kind: CharacterKind) -> float:
        return self.kinds[kind] / self.visible if self.visible else 0.0


@functools.lru_cache(maxsize=65_536)
def kind_of(character: str) -> CharacterKind:
    """Return a character's kind. Private use is corrupt: its meaning depends on a font."""
    category = unicodedata.category(character)
    if character == "\ufffd" or category in ("Cc", "Cs", "Co") or ord(character) & 0xFFFE == 0xFFFE:
        return "corrupt"
    return _KINDS.get(category[0], "other")


def entropy_of(counts: Counter[str]) -> float:
    """Return the bits per character."""
    total = sum(counts.values())
    bits = math.fsum(-count * math.log2(count / total) for count in counts.values())
    return round(bits / total, 4) if total else 0.0


def is_link(block: Block) -> bool:
    """Return True if a block is a link and nothing else."""
    if not block.links:
        return False
    return sum(map(meaningful_chars, block.links)) >= _LINK_SHARE * max(1, meaningful_chars(block.text))


def has_substance(block: Block) -> bool:
    """Return True for content: running text, or part of a table, listing or form."""
    if is_link(block) or block.label in HEADINGS:
        return False
    return block.label in _SUBSTANCE or word_count(block.text) >= RUNNING_WORDS


# Details from a document's text and its address.

_HEAD_BLOCKS = 10
_DAY = r"((?:19|20)\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?!\d)"
_STATED = re.compile(rf"(?:^|\s)(?:{'|'.join(DATE_LABELS)})\s*[:：\t]\s*{_DAY}", re.IGNORECASE)
_IN_ADDRESS = re.compile(rf"(?<!\d)(?:{_DAY}|((?:19|20)\d\d)/(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])(?!\d))")


@dataclass(frozen=True, slots=True)
class Details:
    """A document's origin and description; unknown values are None."""

    title: str | None
    url: str | None
    domain: str | None
    mime: str
    source: str
    language: str
    published: str | None  # ISO date from its first lines, else from its address
    modified: str | None  # ISO date from its server


def details_of(document: DocumentText, language: str) -> Details:
    """Return a document's details; nothing is fetched."""
    url = document.address if document.address.lower().startswith(("http://", "https://")) else None
    try:
        host = urlsplit(url or "").hostname
    except ValueError:
        host = None
    head = "\n".join(block.text for block in document.blocks[:_HEAD_BLOCKS])
    return Details(
        title=document.title,
        url=url,
        domain=host.removeprefix("www.") if host else None,
        mime=document.mime,
        source=document.source,
        language=language,
        published=_day(_STATED, head) or _day(_IN_ADDRESS, document.address),
        modified=modified_day(document.last_modified),
    )


def modified_day(stated: str | None) -> str | None:
    """Return the day of a `Last-Modified` header or an ISO time, in UTC."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(stated or "")
            return (moment.astimezone(UTC) if moment.tzinfo else moment).date().isoformat()
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def _day(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    if match is None:
        return None
    year, month, day = (int(number) for number in match.groups() if number)
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None
