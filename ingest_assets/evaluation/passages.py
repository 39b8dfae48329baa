"""Passages that answer a question, and chunks, as the tokens of the text that both were taken from.

A token is a word or a mark, whatever the model: figures of models with different tokenizers can be compared.
Scripts written without spaces have a token for each letter, with the marks on it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import regex

from ingest_assets.evaluation.alignment import TextIndex
from ingest_assets.model.scripts import UNSPACED

Span = tuple[int, int]  # of characters, the end not included
Token = tuple[str, int]  # the text's name, and the token's number in it

_WORD = r"\p{L}\p{N}_"
_ALONE = rf"[[{_WORD}]&&[{UNSPACED}]--\p{{scx=Latn}}]"  # an apostrophe is a letter of Latin words and of Thai
_BLANK = r"\s\x1c-\x1f"
_TOKEN = regex.compile(rf"(?V1){_ALONE}\p{{M}}*|[[{_WORD}]--{_ALONE}]+|[^{_WORD}{_BLANK}]")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Words and marks of a text, and where each begins and ends."""

    words: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]

    def within(self, span: Span) -> range:
        """The numbers of those that a span of characters holds, be it a part of one."""
        return range(bisect_right(self.ends, span[0]), bisect_left(self.starts, span[1]))


def tokens_of(text: str) -> Tokens:
    """All tokens: only blanks belong to none."""
    found = list(_TOKEN.finditer(text))
    return Tokens(
        [match[0] for match in found], [match.start() for match in found], [match.end() for match in found]
    )


@dataclass(frozen=True, slots=True)
class Overlap:
    """How the tokens that were found and those that were wanted agree."""

    both: int
    found: int
    wanted: int

    def as_dict(self) -> dict[str, float]:
        """Token recall, precision and intersection over union."""
        union = self.found + self.wanted - self.both
        return {
            "token_recall": self.both / self.wanted if self.wanted else 0.0,
            "token_precision": self.both / self.found if self.found else 0.0,
            "token_iou": self.both / union if union else 0.0,
        }


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk's tokens: those that stand in its document's text, and how many there are in all."""

    name: str  # of its document's text
    places: frozenset[int]
    length: int

    @property
    def tokens(self) -> frozenset[Token]:
        """Of all texts."""
        return frozenset((self.name, place) for place in self.places)


@dataclass(frozen=True, slots=True)
class Passages:
    """Chunks and wanted passages over the same texts."""

    chunks: Mapping[str, Chunk]
    wanted: Mapping[str, frozenset[Token]]  # by query

    def aligned_share(self, name: str | None = None) -> float:
        """Of the tokens of all chunks, or of one text's, those whose place in the text is known."""
        chosen = [chunk for chunk in self.chunks.values() if name in (None, chunk.name)]
        length = sum(chunk.length for chunk in chosen)
        return sum(len(chunk.places) for chunk in chosen) / length if length else 0.0

    def overlap(self, query: str, chunks: Iterable[str]) -> Overlap:
        """What some chunks hold of a query's passages. Tokens that two chunks repeat are found once and read
        twice, and those without a place in the text are read too."""
        chosen = [self.chunks[chunk] for chunk in chunks]
        wanted = self.wanted[query]
        both = wanted & frozenset[Token]().union(*(chunk.tokens for chunk in chosen))
        return Overlap(len(both), sum(chunk.length for chunk in chosen), len(wanted))


def passages_of(
    texts: Mapping[str, str],
    spans: Mapping[str, tuple[str, Sequence[Span]]],
    chunks: Iterable[tuple[str, str, str]],
) -> Passages:
    """From texts by name, the text and spans of each query, and chunks (id, text's name, text) in order."""
    sources = {name: tokens_of(text) for name, text in texts.items()}
    indexes = {name: TextIndex(tokens.words) for name, tokens in sources.items()}
    placed = {}
    for chunk_id, name, text in chunks:
        words = tokens_of(text).words
        placed[chunk_id] = Chunk(name, frozenset(indexes[name].places_of(words)), len(words))
    wanted = {
        query: frozenset((name, place) for span in given for place in sources[name].within(span))
        for query, (name, given) in spans.items()
    }
    return Passages(placed, wanted)
