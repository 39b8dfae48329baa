"""Search the tables of a home by vectors, by terms, and by both.

The tables are those of the configured model sets, even if they are still being built, because queries are
embedded with the configured models.
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
from ingest_assets.search.ranking import fused, rank_documents
from ingest_assets.settings.embeddings import DenseOptions
from ingest_assets.stages.lexical_stats import stats_of
from ingest_assets.storage.parquet import detect_damage

DEPTH = 1000  # of rankings; deeper results are neither fused nor returned
Rankings = dict[str, list[str]]  # by query


def chunk_rankings(home: Home, queries: Mapping[str, str], chunks: Collection[str]) -> dict[str, Rankings]:
    """Return each family's rankings of these chunks for each query, best first.

    Other chunks are ignored: tables of an incomplete batch can name chunks that no longer exist.
    """
    sparse = {"sparse": _by_sparse_weights(home, queries)} if "sparse" in home.graph else {}
    families = {"dense": _by_vectors(home, queries), **sparse, "lexical": _by_bm25(home, queries)}
    return {
        family: {query: [chunk for chunk in best if chunk in chunks] for query, best in rankings.items()}
        for family, rankings in families.items()
    }


def document_rankings(chunks: Mapping[str, Rankings], document_of: Mapping[str, str]) -> dict[str, Rankings]:
    """Return the rankings of documents, by their best chunk, with a fusion of all families."""
    families = {
        family: {query: rank_documents(ranking, document_of)[:DEPTH] for query, ranking in rankings.items()}
        for family, rankings in chunks.items()
    }
    return with_fused(families)


def with_fused(families: Mapping[str, Rankings]) -> dict[str, Rankings]:
    """Return the rankings and, last, their reciprocal-rank fusion."""
    queries = next(iter(families.values()))
    fusion = {query: fused([ranking[query][:DEPTH] for ranking in families.values()]) for query in queries}
    return {**families, "fused": fusion}


def _by_vectors(home: Home, queries: Mapping[str, str]) -> Rankings:
    """Rank all chunks by the cosine between their vectors and the query's."""
    rows = _rows(home, "dense", ["chunk_id", "vector"])
    embedded = _unit(query_vectors(home.resolved_settings.embeddings.dense, list(queries.values())))
    ids = rows["chunk_id"].to_pylist()
    vectors = rows["vector"].combine_chunks()
    stored = _unit(vectors.flatten().to_numpy().reshape(len(ids), -1))
    return {
        query: [ids[row] for row in np.argsort(-(stored @ vector), kind="stable")]
        for query, vector in zip(queries, embedded, strict=True)
    }


def query_vectors(options: DenseOptions, queries: Sequence[str]) -> np.ndarray:
    """Return one vector per query; raise `IngestError` if a query cannot be embedded."""
    try:
        return open_dense(options).embed(queries, "query")
    except ItemError as error:
        raise IngestError(f"The queries could not be embedded, so nothing was searched: {error}") from error


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))


def _by_sparse_weights(home: Home, queries: Mapping[str, str]) -> Rankings:
    """Rank the chunks that share a vocabulary entry with the query, by the dot product of their weights."""
    rows = _rows(home, "sparse", ["chunk_id", "indices", "values"])
    ids, lists = rows["chunk_id"].to_pylist(), rows["indices"].combine_chunks()
    of_chunk = np.repeat(np.arange(len(ids)), lists.value_lengths().to_numpy())
    entries = lists.flatten().to_numpy()
    weights = rows["values"].combine_chunks().flatten().to_numpy()
    rankings: Rankings = {}
    vectors = open_sparse(home.resolved_settings.embeddings.sparse).embed(list(queries.values()))
    for query, (indices, values) in zip(queries, vectors, strict=True):
        query_weights = np.zeros(int(max(entries.max(initial=0), indices.max(initial=0))) + 1)
        query_weights[indices] = values
        scores = np.bincount(of_chunk, weights=weights * query_weights[entries], minlength=len(ids))
        best = np.argsort(-scores, kind="stable")
        rankings[query] = [ids[row] for row in best if scores[row] > 0]
    return rankings


def _by_bm25(home: Home, queries: Mapping[str, str]) -> Rankings:
    """Rank the chunks that share a term with the query, by BM25."""
    tables = home.tables("lexical", being_built=True)
    index = LexicalIndex.of(tables.paths, stats_of(home.layout, tables))
    most = max(len(index), 1)
    return {query: [chunk for chunk, _ in index.search(text, most)] for query, text in queries.items()}


def _rows(home: Home, stage: str, columns: Sequence[str]) -> pa.Table:
    paths = home.tables(stage, being_built=True).paths
    tables = []
    for path in paths:
        with detect_damage(path):
            tables.append(pq.ParquetFile(path).read(columns=list(columns)))
    return pa.concat_tables(tables)
