"""Searching the tables of a home, as its users would: by meaning, by words, and by both.

The tables are those of the sets that the settings ask for, be they in the making: queries are embedded as the
settings say, and can be compared with no other vectors.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.app.home import Home
from ingest_assets.core.errors import IngestError, ItemError
from ingest_assets.embedders.providers import open_dense
from ingest_assets.embedders.sparse import open_sparse
from ingest_assets.search.bm25 import LexicalIndex
from ingest_assets.search.ranking import best_first, fused
from ingest_assets.settings.embeddings import DenseOptions
from ingest_assets.stages.lexical_stats import stats_of
from ingest_assets.storage.parquet import naming_damage

DEPTH = 1000  # of a ranking: what stands deeper is not looked at, nor fused
Rankings = dict[str, list[str]]  # by query


def chunk_rankings(home: Home, queries: Mapping[str, str], chunks: Collection[str]) -> dict[str, Rankings]:
    """For each family which of these chunks its search finds, best first, for each query.

    Where a batch was not completed its tables may name chunks from before it was cut anew.
    """
    sparse = {"sparse": _by_entries(home, queries)} if "sparse" in home.graph else {}
    families = {"dense": _by_meaning(home, queries), **sparse, "lexical": _by_words(home, queries)}
    return {
        family: {query: [each for each in ranking if each in chunks] for query, ranking in found.items()}
        for family, found in families.items()
    }


def document_rankings(chunks: Mapping[str, Rankings], document_of: Mapping[str, str]) -> dict[str, Rankings]:
    """The same of documents, each as good as its best chunk, and all families fused."""
    found = {
        family: {query: best_first(ranking, document_of)[:DEPTH] for query, ranking in rankings.items()}
        for family, rankings in chunks.items()
    }
    return with_fused(found)


def with_fused(families: Mapping[str, Rankings]) -> dict[str, Rankings]:
    """The rankings and, last, their reciprocal-rank fusion."""
    queries = next(iter(families.values()))
    both = {query: fused([ranking[query][:DEPTH] for ranking in families.values()]) for query in queries}
    return {**families, "fused": both}


def _by_meaning(home: Home, queries: Mapping[str, str]) -> Rankings:
    """All chunks by the cosine between their vectors and the query's, made by the same model."""
    rows = _rows(home, "dense", ["chunk_id", "vector"])
    wanted = _unit(query_vectors(home.settings_found.embeddings.dense, list(queries.values())))
    ids = rows["chunk_id"].to_pylist()
    vectors = rows["vector"].combine_chunks()
    stored = _unit(vectors.flatten().to_numpy().reshape(len(ids), -1))
    return {
        query: [ids[at] for at in np.argsort(-(stored @ vector), kind="stable")]
        for query, vector in zip(queries, wanted, strict=True)
    }


def query_vectors(options: DenseOptions, queries: Sequence[str]) -> np.ndarray:
    """A row per query; one that has no vector leaves nothing to compare."""
    try:
        return open_dense(options).embed(queries, "query")
    except ItemError as error:
        raise IngestError(f"The queries could not be embedded, so nothing was searched: {error}") from error


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))


def _by_entries(home: Home, queries: Mapping[str, str]) -> Rankings:
    """The chunks that share an entry with the query, by the product of their weights."""
    rows = _rows(home, "sparse", ["chunk_id", "indices", "values"])
    ids, lists = rows["chunk_id"].to_pylist(), rows["indices"].combine_chunks()
    of_chunk = np.repeat(np.arange(len(ids)), lists.value_lengths().to_numpy())
    entries = lists.flatten().to_numpy()
    weights = rows["values"].combine_chunks().flatten().to_numpy()
    found: Rankings = {}
    vectors = open_sparse(home.settings_found.embeddings.sparse).embed(list(queries.values()))
    for query, (indices, values) in zip(queries, vectors, strict=True):
        asked = np.zeros(int(max(entries.max(initial=0), indices.max(initial=0))) + 1)
        asked[indices] = values
        scores = np.bincount(of_chunk, weights=weights * asked[entries], minlength=len(ids))
        best = np.argsort(-scores, kind="stable")
        found[query] = [ids[at] for at in best if scores[at] > 0]
    return found


def _by_words(home: Home, queries: Mapping[str, str]) -> Rankings:
    """The chunks that share a term with the query, by BM25."""
    tables = home.tables("lexical", in_the_making=True)
    index = LexicalIndex.of(tables.paths, stats_of(home.layout, tables))
    most = max(len(index), 1)
    return {query: [chunk for chunk, _ in index.search(text, most)] for query, text in queries.items()}


def _rows(home: Home, stage: str, columns: Sequence[str]) -> pa.Table:
    paths = home.tables(stage, in_the_making=True).paths
    found = []
    for path in paths:
        with naming_damage(path):
            found.append(pq.ParquetFile(path).read(columns=list(columns)))
    return pa.concat_tables(found)
