"""Term counts in blocks of chunks, as the stage makes them, against a loop with Python's Counter."""

import gc
import re
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from ingest_assets.embedders.languages import stop_words
from ingest_assets.embedders.lexical import TermCounts, count_terms
from ingest_assets.embedders.terms import Analysis, folded
from ingest_assets.model.schemas import LEXICAL
from ingest_assets.stages.lexical import ROWS_AT_ONCE
from ingest_tests.bench.comparing import compared
from ingest_tests.bench.figures import Figure, Size

CHUNKS = 2048
WORDS_IN_A_CHUNK = 180
ROUNDS = 5
_WORD = re.compile(r"\w+")
_PLAIN = Analysis()
_ENGLISH = Analysis(stems=True, stops=True, language="en")


def measure(size: Size) -> list[Figure]:
    """Both sides from a column of texts to the table's columns, in turns, the best of five."""
    texts = _corpus(size) or _made(size.of(CHUNKS))
    return [
        *_compared("words", texts, _PLAIN),
        *_compared("stems", texts, _ENGLISH),
    ]


def _compared(kind: str, texts: Sequence[str], analysis: Analysis) -> list[Figure]:
    naive = _Loop(analysis, texts)
    blocks = [pa.array(texts[at : at + ROWS_AT_ONCE]) for at in range(0, len(texts), ROWS_AT_ONCE)]
    done = compared(
        lambda: [naive(block) for block in blocks],
        lambda: [count_terms(block, analysis=analysis) for block in blocks],
        rounds=ROUNDS,
        before_each=gc.collect,
    )
    differing = sum(_differing(*each) for each in zip(done.naive, done.ours, strict=True))
    return [
        done.figure(f"{kind}: times as fast as a Counter loop", ">=", 2.3),
        Figure(f"{kind}: chunks a second", len(texts) / done.ours_s, "chunks/s"),
        Figure(f"{kind}: rows that differ", differing, "", "=", 0),
    ]


def _differing(expected: TermCounts, found: TermCounts) -> int:
    rows = zip(*(_rows(counts) for counts in (expected, found)), strict=True)
    return sum(one != other for one, other in rows)


def _rows(counts: TermCounts) -> list[tuple[object, ...]]:
    columns = (counts.terms, counts.counts, counts.length)
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


class _Loop:
    """Text by text: fold, find the words, count, sort. Words are found with `\\w+` wherever that finds what
    our rules do, which is looked up before the clock runs; it is much quicker than any other way."""

    def __init__(self, analysis: Analysis, texts: Sequence[str]) -> None:
        import Stemmer

        self._analysis = analysis
        self._stops = stop_words(analysis.language) if analysis.stops else frozenset()
        self._stems = Stemmer.Stemmer("english").stemWords if analysis.stems else list
        self._is_easy = {text: _WORD.findall(folded(text)) == _PLAIN.terms(text) for text in texts}

    def __call__(self, texts: pa.Array) -> TermCounts:
        terms, counts, lengths = [], [], []
        for text in texts.to_pylist():
            found = Counter(self._terms(text) if self._is_easy[text] else self._analysis.terms(text))
            terms.append(sorted(found))
            counts.append([found[term] for term in terms[-1]])
            lengths.append(found.total())
        types = (LEXICAL.schema.field(name).type for name in ("terms", "counts", "length"))
        columns = zip((terms, counts, lengths), types, strict=True)
        return TermCounts(*(pa.array(values, kind) for values, kind in columns))

    def _terms(self, text: str) -> list[str]:
        words = _WORD.findall(folded(text))
        return self._stems([word for word in words if word not in self._stops] if self._stops else words)


def _corpus(size: Size) -> list[str]:
    """Pieces of the texts below a folder of one's own."""
    if size.corpus is None:
        return []
    files = sorted(path for path in size.corpus.rglob("*") if path.suffix in {".md", ".txt"})
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    step = 8 * WORDS_IN_A_CHUNK
    return [text[at : at + step] for text in texts for at in range(0, len(text), step)]


def _made(count: int) -> list[str]:
    """Prose whose words follow each other as in language: few of them often and short, most of them seldom
    and longer, with commas, capitals, accents and curly quotes here and there."""
    common = sorted(stop_words("en"))
    ranks = [int(30_000 ** (number * 0.6180339887 % 1)) for number in range(count * WORDS_IN_A_CHUNK)]
    words = [common[rank] if rank < len(common) else _word(rank) for rank in ranks]
    starts = range(0, len(words), WORDS_IN_A_CHUNK)
    return [" ".join(words[at : at + WORDS_IN_A_CHUNK]) for at in starts]


def _word(rank: int) -> str:
    letters, rest = "", rank
    while rest:
        rest, syllable = divmod(rest, 100)
        letters += "bcdfghklmnprstvwxyzq"[syllable % 20] + "aeiou"[syllable // 20]
    ending = ("", "s", "ing", "ed", "ation", ",", ".", "s.", "é", "”")[rank % 10]
    return (letters.capitalize() if rank % 9 == 0 else letters) + ending
