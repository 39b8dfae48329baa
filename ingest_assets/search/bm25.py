"""BM25 over the lexical tables, computed when asked: the rows hold counts, never scores."""

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
    """What BM25 must know of the whole corpus: `lexical_stats`, read."""

    chunks: int
    average_length: float
    document_frequencies: Mapping[str, int]


def read_stats(path: Path) -> CorpusStats:
    """The statistics from their file."""
    said, rows = _metadata(path), _read(path, ["term", "document_frequency"])
    frequencies = dict(zip(rows["term"].to_pylist(), rows["document_frequency"].to_pylist(), strict=True))
    return CorpusStats(int(said[b"ingest.chunks"]), float(said[b"ingest.average_length"]), frequencies)


class LexicalIndex:
    """An inverted index in memory. A term that the statistics do not know yet counts by its own chunks."""

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
        self._languages = {each: number for number, each in enumerate(languages.dictionary.to_pylist())}
        of_language = languages.indices.to_numpy()
        self._chunks_in = np.bincount(of_language, minlength=len(self._languages))
        self._penalty = k1 * (1 - b + b * rows["length"].to_numpy() / max(stats.average_length, 1e-9))
        terms = rows["terms"].combine_chunks()
        encoded = terms.flatten().dictionary_encode()
        ids = encoded.indices.to_numpy()
        order = np.argsort(ids, kind="stable")
        of_chunk = np.repeat(np.arange(len(terms), dtype=np.int32), terms.value_lengths().to_numpy())
        self._chunks = of_chunk[order]
        self._counts = rows["counts"].combine_chunks().flatten().to_numpy()[order]
        self._starts = np.searchsorted(ids[order], np.arange(len(encoded.dictionary) + 1))
        self._term_ids = {term: number for number, term in enumerate(encoded.dictionary.to_pylist())}
        self._is_in = np.zeros((len(self._term_ids), len(self._languages)), bool)
        self._is_in[ids, of_language[of_chunk]] = True

    @classmethod
    def open(cls, data: Path | str, *, k1: float = 1.2, b: float = 0.75) -> "LexicalIndex":
        """The index of a home's tables, below its `data` folder."""
        tables = sorted(Path(data, "embeddings", "lexical").glob("*.parquet"))
        stats = Path(data, "lexical_stats", "corpus.parquet")
        if not tables or not stats.is_file():
            raise ConfigError(f"{data}: there is no lexical table or no lexical_stats; run `ingest embed`.")
        return cls.of(tables, read_stats(stats), k1=k1, b=b)

    @classmethod
    def of(
        cls, tables: Sequence[Path], stats: CorpusStats, *, k1: float = 1.2, b: float = 0.75
    ) -> "LexicalIndex":
        """The index of these tables, of one or more, all made with the same settings."""
        rows = pa.concat_tables([_read(path, _NEEDED) for path in tables])
        return cls(rows, stats, _options_of(tables), k1=k1, b=b)

    def __len__(self) -> int:
        return len(self._chunk_ids)

    def search(self, query: str, k: int = 10, *, language: str = "") -> list[tuple[str, float]]:
        """The best chunks with their scores, best first; equal ones as they stand in the tables.

        Where terms depend on the language and the query's is not given, it is read in each of the rows', all
        without the stop words of the one that it seems to be in: to the rules of the others they are rare
        words, and would outweigh all that was asked for. It seems to be in the language of which it has the
        most words, those that its rows hold and, twice, its stop words; if two have as many, in that of more
        chunks. A query of nothing but stop words keeps them.
        """
        scores = np.zeros(len(self), dtype=np.float64)
        for term, count in sorted(self._terms(query, language).items()):
            number = self._term_ids.get(term)
            if number is None:
                continue
            start, stop = self._starts[number], self._starts[number + 1]
            frequency = self._stats.document_frequencies.get(term, int(stop - start))
            missing = max(self._stats.chunks - frequency, 0)
            rarity = np.log1p((missing + 0.5) / (frequency + 0.5))
            chunks, counts = self._chunks[start:stop], self._counts[start:stop].astype(np.float64)
            scores[chunks] += count * rarity * counts * (self._k1 + 1) / (counts + self._penalty[chunks])
        hits = np.flatnonzero(scores > 0)
        if len(hits) > k:
            least = np.partition(scores[hits], len(hits) - k)[len(hits) - k]
            hits = hits[scores[hits] >= least]
        best = hits[np.argsort(-scores[hits], kind="stable")][:k]
        return [(self._chunk_ids[int(at)].as_py(), float(scores[at])) for at in best]

    def _terms(self, query: str, language: str) -> Counter[str]:
        """The query's terms by the analysis of the rows."""
        if language or not uses_language(self._options):
            return Counter(analysis_for(self._options, language).terms(query))
        without = self._stop_words(set(Analysis().terms(query)))
        found: Counter[str] = Counter()
        for each in filter(None, self._languages):
            found |= Counter(analysis_for(self._options, each).terms(query, without))
        return found

    def _stop_words(self, words: Set[str]) -> Set[str]:
        """Those of the language that a query of these words seems to be in; none if they are all it has."""
        known = sorted(set(self._languages) - {"", UNDETERMINED})
        if not known or not self._options.stop_words:
            return frozenset()
        seeming = max(known, key=lambda each: self._weight(each, words))
        return stop_words(seeming) if words - stop_words(seeming) else frozenset()

    def _weight(self, language: str, words: Set[str]) -> tuple[int, int]:
        """How many of the words are the language's, and how many of the chunks.

        A stop word counts twice: a few quoted words in the rows make no language of a query's own.
        """
        analysis, number = analysis_for(self._options, language), self._languages[language]
        terms = [self._term_ids.get(term) for word in words for term in analysis.of_word(word)]
        held = sum(bool(self._is_in[term, number]) for term in terms if term is not None)
        return 2 * len(words & stop_words(language)) + held, int(self._chunks_in[number])


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
    """How the rows were made, as their files say."""
    said = {_metadata(path)[b"ingest.options"] for path in tables}
    if len(said) > 1:
        raise ConfigError(
            f"{tables[0].parent}: tables of different embeddings.lexical settings; run `ingest embed`."
        )
    given = json.loads(said.pop())
    return LexicalOptions.model_validate({name: value for name, value in given.items() if value != ""})
