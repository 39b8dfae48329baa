"""What the rules judge by: a document's characters, lines and sentences, counted once."""

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ingest_assets.stages.judging.language import Detected, detect_language
from ingest_assets.stages.judging.normal import as_label, different_words, meaningful_chars, plain, word_count
from ingest_assets.stages.judging.reading import HEADINGS, TABLE_ROW, Block, Reading

CharacterKind = Literal["letter", "digit", "symbol", "corrupt", "other"]

# Running text has words enough for a sentence; labels, menu entries and headings do not.
RUNNING_WORDS = 8
# A block is a link when links hold nearly all of it; a bullet or a full stop may stand beside them.
_LINK_SHARE = 0.8
_SENTENCE_ENDS = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_LONG_LINE = 120
_SUBSTANCE = frozenset({TABLE_ROW, "code", "formula", "field_value", "caption", "footnote"})


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, or a line that is shorter than one."""

    text: str
    plain: str  # as phrases are written
    label: str  # as labels are written
    words: int
    chars: int  # letters and digits
    is_link: bool
    is_heading: bool  # one that only names what is below it; a question for a heading says something


@dataclass(frozen=True)
class Facts:
    """A reading and what is counted of it."""

    reading: Reading

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each character occurs, whitespace left out."""
        counts = Counter(self.reading.text)
        for character in [character for character in counts if character.isspace()]:
            del counts[character]
        return counts

    @cached_property
    def plain_text(self) -> str:
        """As phrases are written; asked of short texts only."""
        return plain(self.reading.text)

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
        return detect_language(self.reading.blocks)

    @cached_property
    def different_words(self) -> int:
        return different_words(self.reading.text)

    @cached_property
    def loose_text(self) -> str:
        """What stands outside tables, code and formulas."""
        return "\n".join(b.text for b in self.reading.blocks if b.label not in (TABLE_ROW, "code", "formula"))

    @cached_property
    def substance(self) -> int:
        """Letters and digits of running text, tables, code and captions outside links."""
        return sum(meaningful_chars(block.text) for block in self.reading.blocks if has_substance(block))

    @cached_property
    def linked(self) -> int:
        """Letters and digits inside links."""
        return sum(map(meaningful_chars, self.reading.links))

    @cached_property
    def lines(self) -> Counter[str]:
        """Lines outside tables, long ones cut at the ends of sentences, and how often each occurs."""
        loose = (block for block in self.reading.blocks if block.label != TABLE_ROW)
        return Counter(line for block in loose for line in _lines(block.text))

    @cached_property
    def repeated_share(self) -> float:
        """Share of the lines' text that stood there before."""
        total = sum(len(line) * count for line, count in self.lines.items())
        return 1 - sum(map(len, self.lines)) / total if total else 0.0

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The text in sentences and short lines; costly for long texts, so asked of short ones only."""
        return tuple(unit for block in self.reading.blocks for unit in _units(block))

    def share(self, kind: CharacterKind) -> float:
        return self.kinds[kind] / self.visible if self.visible else 0.0


@functools.lru_cache(maxsize=65_536)
def kind_of(character: str) -> CharacterKind:
    """Private use is corrupt: what a font makes of it nobody can know."""
    category = unicodedata.category(character)
    if character == "\ufffd" or category in ("Cc", "Cs", "Co") or ord(character) & 0xFFFE == 0xFFFE:
        return "corrupt"
    by_first: dict[str, CharacterKind] = {
        "L": "letter",
        "M": "letter",
        "N": "digit",
        "P": "symbol",
        "S": "symbol",
    }
    return by_first.get(category[0], "other")


def entropy_of(counts: Counter[str]) -> float:
    """Bits per character."""
    total = sum(counts.values())
    bits = math.fsum(-count * math.log2(count / total) for count in counts.values())
    return round(bits / total, 4) if total else 0.0


def is_link(block: Block) -> bool:
    """Whether a block is a link and nothing else."""
    if not block.links:
        return False
    return sum(map(meaningful_chars, block.links)) >= _LINK_SHARE * max(1, meaningful_chars(block.text))


def has_substance(block: Block) -> bool:
    """Whether a block says something by itself: running text, or a part of a table, listing or form."""
    if is_link(block) or block.label in HEADINGS:
        return False
    return block.label in _SUBSTANCE or word_count(block.text) >= RUNNING_WORDS


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        parts = line.replace("。", ". ").split(". ") if len(line) > _LONG_LINE else [line]
        yield from filter(None, (" ".join(part.split()).lower() for part in parts))


def _units(block: Block) -> Iterator[Unit]:
    link, heading = is_link(block), block.label in HEADINGS and word_count(block.text) < RUNNING_WORDS
    lines = [block.text] if block.label == TABLE_ROW else block.text.splitlines()
    for line in lines:
        for part in _SENTENCE_ENDS.split(line):
            if chars := meaningful_chars(part):
                text = plain(part)
                yield Unit(part.strip(), text, as_label(text), word_count(text), chars, link, heading)
