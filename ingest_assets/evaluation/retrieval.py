"""Figures of rankings (of documents, or of passages that answer a question), and gates on these figures."""

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

# Find a chunk's position in its text by tokens, regardless of whitespace and removed markup.

_GRAM = 3  # consecutive tokens that locate a chunk; fewer occur in too many places
_SLACK = 40  # tokens of markup that parsing can have removed inside a chunk


class TextIndex:
    """Finds a text's chunks. Call it in the order of the chunks: of repeated text, the next place counts."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = list(tokens)
        self._grams: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place in range(len(tokens) - _GRAM + 1):
            self._grams[tuple(tokens[place : place + _GRAM])].append(place)
        self._next = 0

    def places_of(self, chunk: Sequence[str]) -> list[int]:
        """Return the positions of the chunk's tokens in the text, in order, without unmatched tokens."""
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
        """Return the chunk's start by a vote of its 3-grams; of equal votes, the nearest to the last end."""
        votes: Counter[int] = Counter()
        for offset in range(max(len(chunk) - _GRAM + 1, 1)):
            for place in self._grams.get(tuple(chunk[offset : offset + _GRAM]), ()):
                votes[place - offset] += 1
        if not votes:  # too short, or no 3-gram is in the text: assume that it follows the last chunk
            return self._next if chunk else None
        most = max(votes.values())
        good = [start for start, count in votes.items() if count >= 0.9 * most]
        return max(0, min(good, key=lambda start: (abs(start - self._next), start)))


# Compare chunks with the passages that answer a question, as sets of tokens of their common text.
#
# A token is a word or a punctuation mark, independent of any model's tokenizer, so that models can be
# compared. Scripts written without spaces have a token for each letter, with its combining marks.

Span = tuple[int, int]  # of characters; the end is exclusive
Token = tuple[str, int]  # the text's name, and the token's number in it

_WORD = r"\p{L}\p{N}_"
_UNSPACED_LETTER = (
    rf"[[{_WORD}]&&[{UNSPACED}]--\p{{scx=Latn}}]"  # an apostrophe is a letter of Latin words and of Thai
)
_BLANK = r"\s\x1c-\x1f"
_TOKEN = regex.compile(
    rf"(?V1){_UNSPACED_LETTER}\p{{M}}*|[[{_WORD}]--{_UNSPACED_LETTER}]+|[^{_WORD}{_BLANK}]"
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text, and where each begins and ends."""

    words: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]

    def within(self, span: Span) -> range:
        """Return the numbers of the tokens that overlap a span of characters."""
        return range(bisect_right(self.ends, span[0]), bisect_left(self.starts, span[1]))


def tokens_of(text: str) -> Tokens:
    """Return all tokens of a text: everything except whitespace."""
    matches = list(_TOKEN.finditer(text))
    return Tokens([m[0] for m in matches], [m.start() for m in matches], [m.end() for m in matches])


@dataclass(frozen=True, slots=True)
class Overlap:
    """Numbers of tokens: retrieved, relevant, and both."""

    both: int
    retrieved: int
    relevant: int

    def as_dict(self) -> dict[str, float]:
        """Return token recall, precision and intersection over union."""
        union = self.retrieved + self.relevant - self.both
        return {
            "token_recall": self.both / self.relevant if self.relevant else 0.0,
            "token_precision": self.both / self.retrieved if self.retrieved else 0.0,
            "token_iou": self.both / union if union else 0.0,
        }


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk's tokens: the places of those found in its document's text, and the number of all."""

    name: str  # of its document's text
    places: frozenset[int]
    length: int


@dataclass(frozen=True, slots=True)
class Passages:
    """The chunks, and the passages that answer each query, of the same texts."""

    chunks: Mapping[str, Chunk]
    relevant: Mapping[str, frozenset[Token]]  # by query

    def aligned_share(self, name: str | None = None) -> float:
        """Return the share of tokens with a known place, in all chunks or in those of one text."""
        chosen = [chunk for chunk in self.chunks.values() if name in (None, chunk.name)]
        length = sum(chunk.length for chunk in chosen)
        return sum(len(chunk.places) for chunk in chosen) / length if length else 0.0

    def overlap(self, query: str, chunks: Iterable[str]) -> Overlap:
        """Compare chunks with a query's passages. Every token of every chunk counts against precision, also
        repeated ones and those without a place in the text."""
        chosen = [self.chunks[chunk] for chunk in chunks]
        relevant = self.relevant[query]
        covered = {(chunk.name, place) for chunk in chosen for place in chunk.places}
        return Overlap(len(relevant & covered), sum(chunk.length for chunk in chosen), len(relevant))


def passages_of(
    texts: Mapping[str, str],
    spans: Mapping[str, tuple[str, Sequence[Span]]],
    chunks: Iterable[tuple[str, str, str]],
) -> Passages:
    """Return the passages of texts by name, spans by query, and ordered chunks (id, text name, text)."""
    sources = {name: tokens_of(text) for name, text in texts.items()}
    indexes = {name: TextIndex(tokens.words) for name, tokens in sources.items()}
    placed = {}
    for chunk_id, name, text in chunks:
        words = tokens_of(text).words
        placed[chunk_id] = Chunk(name, frozenset(indexes[name].places_of(words)), len(words))
    relevant = {
        query: frozenset((name, place) for span in answers for place in sources[name].within(span))
        for query, (name, answers) in spans.items()
    }
    return Passages(placed, relevant)


Figures = dict[str, float]
Gains = Mapping[str, Mapping[str, float]]  # by query and document; only relevant ones, so above 0
PASSAGE_DEPTHS = (1, 5, 10)
DOCUMENT_FIGURES = ("ndcg@10", "recall@10", "recall@100", "mrr")
PASSAGE_FIGURES = tuple(
    f"{name}@{depth}" for depth in PASSAGE_DEPTHS for name in ("token_recall", "token_precision", "token_iou")
)


def document_figures(
    rankings: Mapping[str, Sequence[str]], relevant: Gains, graded: Gains | None = None
) -> Figures:
    """Return means over the queries with a relevant document. A document that was not found is a miss."""
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
    """Return mean token recall, precision and IoU of the best chunks over these queries."""
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


# Gates: figures that must be reached, such as `dense.ndcg@10=0.395`.

RANKINGS = ("dense", "sparse", "lexical", "fused")
_GATE = re.compile(r"([a-z]+)\.([a-z_]+(?:@\d+)?)=(\d*\.?\d+)")


@dataclass(frozen=True, slots=True)
class Gate:
    """The minimum of a ranking's figure."""

    ranking: str
    figure: str
    least: float

    def judged(self, rankings: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
        """Return the gate with the figure that was reached: 0 for a family that was not searched."""
        reached = rankings.get(self.ranking, {}).get(self.figure, 0.0)
        return {
            "figure": f"{self.ranking}.{self.figure}",
            "at_least": self.least,
            "reached": reached,
            "passed": reached >= self.least,
        }


def read_gate(text: str, figures: Collection[str]) -> Gate:
    """Parse a gate of the command line. Raise `ConfigError` for an unknown ranking or figure."""
    match = _GATE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"--at-least: {text!r} must be like dense.ndcg@10=0.395.")
    for name, known in ((match[1], RANKINGS), (match[2], figures)):
        if name not in known:
            raise ConfigError(f"--at-least: there is no {name!r}. Use one of: {', '.join(known)}.")
    return Gate(match[1], match[2], float(match[3]))
