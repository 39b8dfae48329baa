"""Figures of rankings: documents that should be found, passages that answer a question, and the least that a
figure may be.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import regex

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import UNSPACED
from ingest_assets.search.ranking import ndcg, recall, reciprocal_rank

# Where in a text a chunk of it stands, by its tokens: whitespace and lost markup do not matter.

_GRAM = 3  # tokens in a row, by which a place is found: fewer are in too many places
_SLACK = 40  # tokens by which a chunk's place may be shifted inside itself: markup that reading took away


class TextIndex:
    """A text's tokens. Chunks are asked for in order: where a text repeats itself, the next place counts."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = list(tokens)
        self._grams: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place in range(len(tokens) - _GRAM + 1):
            self._grams[tuple(tokens[place : place + _GRAM])].append(place)
        self._next = 0

    def places_of(self, chunk: Sequence[str]) -> list[int]:
        """Which tokens of the text the chunk's tokens are, in order; those without a place are left out."""
        start = self._start_of(chunk)
        if start is None:
            return []
        if self._tokens[start : start + len(chunk)] == list(chunk):
            places = list(range(start, start + len(chunk)))
        else:
            low = max(0, start - _SLACK)
            window = self._tokens[low : start + len(chunk) + 2 * _SLACK]
            blocks = SequenceMatcher(None, window, chunk, autojunk=False).get_matching_blocks()
            places = [low + block.a + offset for block in blocks for offset in range(block.size)]
        self._next = places[-1] + 1 if places else self._next
        return places

    def _start_of(self, chunk: Sequence[str]) -> int | None:
        """Where most runs of three tokens say that the chunk begins; if many, the nearest to the last end."""
        votes: Counter[int] = Counter()
        for offset in range(max(len(chunk) - _GRAM + 1, 1)):
            for place in self._grams.get(tuple(chunk[offset : offset + _GRAM]), ()):
                votes[place - offset] += 1
        if not votes:  # too short for a run, or without one in the text: after the last one, if anywhere
            return self._next if chunk else None
        most = max(votes.values())
        good = [start for start, count in votes.items() if count >= 0.9 * most]
        return max(0, min(good, key=lambda start: (abs(start - self._next), start)))


# Passages that answer a question, and chunks, as the tokens of the text that both were taken from.
#
# A token is a word or a mark, whatever the model: figures of models with different tokenizers can be
# compared. Scripts written without spaces have a token for each letter, with the marks on it.

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
        held = {(chunk.name, place) for chunk in chosen for place in chunk.places}
        return Overlap(len(wanted & held), sum(chunk.length for chunk in chosen), len(wanted))


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


Figures = dict[str, float]
Gains = Mapping[str, Mapping[str, float]]  # by query and document; only what is relevant, above 0
PASSAGE_DEPTHS = (1, 5, 10)
DOCUMENT_FIGURES = ("ndcg@10", "recall@10", "recall@100", "mrr")
PASSAGE_FIGURES = tuple(
    f"{name}@{depth}" for depth in PASSAGE_DEPTHS for name in ("token_recall", "token_precision", "token_iou")
)


def document_figures(
    rankings: Mapping[str, Sequence[str]], relevant: Gains, graded: Gains | None = None
) -> Figures:
    """Means over the queries that have a relevant document. What was not found counts as a miss."""
    figures = _means(
        [
            {
                "ndcg@10": ndcg(rankings[query], gains, 10),
                "recall@10": recall(rankings[query], gains, 10),
                "recall@100": recall(rankings[query], gains, 100),
                "mrr": reciprocal_rank(rankings[query], gains),
            }
            for query, gains in relevant.items()
        ]
    )
    if graded is not None:
        figures |= _means([{"ndcg_graded@10": ndcg(rankings[query], graded[query], 10)} for query in graded])
    return figures


def passage_figures(
    rankings: Mapping[str, Sequence[str]], passages: Passages, queries: Sequence[str]
) -> Figures:
    """Means over some queries of how much of the wanted passages the best chunks hold, and how much else."""
    return _means(
        [
            {
                f"{name}@{depth}": value
                for depth in PASSAGE_DEPTHS
                for name, value in passages.overlap(query, rankings[query][:depth]).as_dict().items()
            }
            for query in queries
        ]
    )


def _means(rows: Sequence[Figures]) -> Figures:
    names = rows[0] if rows else {}
    return {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in names}


# Figures that must be reached, as in `dense.ndcg@10=0.395`.

RANKINGS = ("dense", "sparse", "lexical", "fused")
_GATE = re.compile(r"([a-z]+)\.([a-z_]+(?:@\d+)?)=(\d*\.?\d+)")


@dataclass(frozen=True, slots=True)
class Gate:
    """The least that a figure of a ranking may be."""

    ranking: str
    figure: str
    least: float

    def judged(self, rankings: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
        """The gate and what was reached; a family that was not searched has reached nothing."""
        reached = rankings.get(self.ranking, {}).get(self.figure, 0.0)
        return {
            "figure": f"{self.ranking}.{self.figure}",
            "at_least": self.least,
            "reached": reached,
            "passed": reached >= self.least,
        }


def read_gate(text: str, figures: Collection[str]) -> Gate:
    """A gate as it is given on the command line, on one of the figures there will be."""
    match = _GATE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"--at-least: {text!r} should be like dense.ndcg@10=0.395.")
    for given, known in ((match[1], RANKINGS), (match[2], figures)):
        if given not in known:
            raise ConfigError(f"--at-least: there is no {given!r}; there is {', '.join(known)}.")
    return Gate(match[1], match[2], float(match[3]))
