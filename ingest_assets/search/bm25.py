"""BM25 over the lexical tables, computed at query time: the rows contain counts, not scores."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.core.errors import ConfigError, TableDamaged
from ingest_assets.search.terms import Analysis, analysis_for, stop_words, uses_language
from ingest_assets.settings.admission import UNDETERMINED
from ingest_assets.settings.embeddings import LexicalOptions

_NEEDED = ["chunk_id", "terms", "counts", "length", "language"]


@dataclass(frozen=True, slots=True)
class CorpusStats:
    """Statistics of the whole corpus that BM25 needs, from `lexical_stats`."""

    chunks: int
    average_length: float
    document_frequencies: Mapping[str, int]


def read_stats(path: Path) -> CorpusStats:
    """Read the statistics from their file."""
    footer, rows = _metadata(path), _read(path, ["term", "document_frequency"])
    frequencies = dict(zip(rows["term"].to_pylist(), rows["document_frequency"].to_pylist(), strict=True))
    return CorpusStats(int(footer[b"ingest.chunks"]), float(footer[b"ingest.average_length"]), frequencies)


class LexicalIndex:
    """An inverted index in memory. For a term missing from the statistics, its chunks here are counted."""

    def __init__(
        self,
        rows: pa.Table,
        stats: CorpusStats,
        options: LexicalOptions,
        *,
        k1: float = 1.2,
        b: float = 0.75,
    ) -> None:
        self._options, self._stats, self._k1 = options, stats, k1
        self._chunk_ids = rows["chunk_id"].combine_chunks()
        languages = rows["language"].combine_chunks().fill_null("").dictionary_encode()
        self._languages = {code: number for number, code in enumerate(languages.dictionary.to_pylist())}
        language_ids = languages.indices.to_numpy()
        self._chunks_in = np.bincount(language_ids, minlength=len(self._languages))
        self._length_norm = k1 * (1 - b + b * rows["length"].to_numpy() / max(stats.average_length, 1e-9))
        terms = rows["terms"].combine_chunks()
        encoded = terms.flatten().dictionary_encode()
        term_ids = encoded.indices.to_numpy()
        order = np.argsort(term_ids, kind="stable")
        chunks = np.repeat(np.arange(len(terms), dtype=np.int32), terms.value_lengths().to_numpy())
        self._chunks = chunks[order]
        self._counts = rows["counts"].combine_chunks().flatten().to_numpy()[order]
        self._starts = np.searchsorted(term_ids[order], np.arange(len(encoded.dictionary) + 1))
        self._term_ids = {term: number for number, term in enumerate(encoded.dictionary.to_pylist())}
        self._is_in = np.zeros((len(self._term_ids), len(self._languages)), bool)
        self._is_in[term_ids, language_ids[chunks]] = True

    @classmethod
    def open(cls, data: Path | str, *, k1: float = 1.2, b: float = 0.75) -> "LexicalIndex":
        """Build the index of a home's tables from its `data` folder."""
        tables = sorted(Path(data, "embeddings", "lexical").glob("*.parquet"))
        stats = Path(data, "lexical_stats", "corpus.parquet")
        if not tables or not stats.is_file():
            raise ConfigError(
                f"{data}: no lexical tables or no statistics. Pass the data folder of a home in which "
                "`ingest embed` has run."
            )
        return cls.of(tables, read_stats(stats), k1=k1, b=b)

    @classmethod
    def of(
        cls, tables: Sequence[Path], stats: CorpusStats, *, k1: float = 1.2, b: float = 0.75
    ) -> "LexicalIndex":
        """Build the index of one or more tables, all with the same settings."""
        rows = pa.concat_tables([_read(path, _NEEDED) for path in tables])
        return cls(rows, stats, _options_of(tables), k1=k1, b=b)

    def __len__(self) -> int:
        return len(self._chunk_ids)

    def search(self, query: str, k: int = 10, *, language: str = "") -> list[tuple[str, float]]:
        """Return the `k` best chunks with their scores, best first; ties in the order of the tables.

        Without `language`, if terms depend on it, the query is analyzed in each language of the rows, without
        the stop words of its probable language: in other languages they would be rare words with a high
        weight. The probable language is the one with most of the query's words, counting words in its rows
        once and its stop words twice; on a tie, the one with more chunks. A query of stop words only keeps
        them.
        """
        scores = np.zeros(len(self), dtype=np.float64)
        for term, count in sorted(self._terms(query, language).items()):
            number = self._term_ids.get(term)
            if number is None:
                continue
            start, stop = self._starts[number], self._starts[number + 1]
            frequency = self._stats.document_frequencies.get(term, int(stop - start))
            chunks_without_term = max(self._stats.chunks - frequency, 0)
            idf = np.log1p((chunks_without_term + 0.5) / (frequency + 0.5))
            chunks, counts = self._chunks[start:stop], self._counts[start:stop].astype(np.float64)
            scores[chunks] += count * idf * counts * (self._k1 + 1) / (counts + self._length_norm[chunks])
        hits = np.flatnonzero(scores > 0)
        if len(hits) > k:
            least = np.partition(scores[hits], len(hits) - k)[len(hits) - k]
            hits = hits[scores[hits] >= least]
        best = hits[np.argsort(-scores[hits], kind="stable")][:k]
        return [(self._chunk_ids[int(row)].as_py(), float(scores[row])) for row in best]

    def _terms(self, query: str, language: str) -> Counter[str]:
        """Return the query's terms, analyzed like the rows."""
        if language or not uses_language(self._options):
            return Counter(analysis_for(self._options, language).terms(query))
        ignored = self._stop_words(set(Analysis().terms(query)))
        terms: Counter[str] = Counter()
        for code in filter(None, self._languages):
            terms |= Counter(analysis_for(self._options, code).terms(query, ignored))
        return terms

    def _stop_words(self, words: Set[str]) -> Set[str]:
        """Return the stop words of the query's probable language; none if the query has no other words."""
        known = sorted(set(self._languages) - {"", UNDETERMINED})
        if not known or not self._options.stop_words:
            return frozenset()
        probable = max(known, key=lambda code: self._weight(code, words))
        return stop_words(probable) if words - stop_words(probable) else frozenset()

    def _weight(self, language: str, words: Set[str]) -> tuple[int, int]:
        """Return how many of the words belong to the language, and its number of chunks.

        Stop words count twice: words of another language that are quoted in the rows weigh less.
        """
        analysis, number = analysis_for(self._options, language), self._languages[language]
        terms = [self._term_ids.get(term) for word in words for term in analysis.word_terms(word)]
        present = sum(bool(self._is_in[term, number]) for term in terms if term is not None)
        return 2 * len(words & stop_words(language)) + present, int(self._chunks_in[number])


def _read(path: Path, columns: Sequence[str]) -> pa.Table:
    try:
        return pq.ParquetFile(path).read(columns=list(columns))
    except (pa.ArrowException, OSError) as error:
        raise TableDamaged.at(path, error) from error


def _metadata(path: Path) -> Mapping[bytes, bytes]:
    try:
        return pq.read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise TableDamaged.at(path, error) from error


def _options_of(tables: Sequence[Path]) -> LexicalOptions:
    """Return the settings of the tables, from their footers."""
    stored = {_metadata(path)[b"ingest.options"] for path in tables}
    if len(stored) > 1:
        raise ConfigError(
            f"{tables[0].parent}: tables have different embeddings.lexical settings. Run `ingest embed`."
        )
    options = json.loads(stored.pop())
    return LexicalOptions.model_validate({name: value for name, value in options.items() if value != ""})
