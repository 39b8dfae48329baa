"""Corpus statistics for BM25: number of chunks, average length, and document frequency of each term.

They are computed from all lexical tables and stored in a file of their own: a new batch changes no old file.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.core.errors import IngestError
from ingest_assets.core.identity import canonical_json, sha256_text
from ingest_assets.core.layout import Layout
from ingest_assets.core.schemas import LEXICAL_STATS
from ingest_assets.search.bm25 import CorpusStats, read_stats
from ingest_assets.storage.locks import FileLock
from ingest_assets.storage.parquet import Footer, read_footer, write_parquet
from ingest_assets.storage.table import CommitResult, Table, detect_damaged_tables

VERSION = "1"
CORPUS = "corpus"
_MAX_ATTEMPTS = 5
_FREQUENCIES = ("term", "document_frequency")


class TablesKeepChanging(IngestError):
    """Batches were written during every attempt to compute the statistics."""


def stats_path(layout: Layout) -> Path:
    """Return the file of the statistics."""
    return layout.table(LEXICAL_STATS.asset, CORPUS)


def tables_fingerprint(lexical: Table) -> str:
    """Return a hash of the tables' contents, independent of when and where they were written."""
    facts = [
        [path.name, footer.config_hash, [[item, record.fingerprint] for item, record in footer.items.items()]]
        for path, footer in lexical.footers.items()
    ]
    return sha256_text(canonical_json([VERSION, facts]))


def are_current(layout: Layout, lexical: Table) -> bool:
    """Return True if the stored statistics are those of exactly these tables."""
    footer = read_footer(stats_path(layout))
    return footer is not None and footer.config_hash == tables_fingerprint(lexical)


def stats_of(layout: Layout, lexical: Table) -> CorpusStats:
    """Return the statistics of exactly these tables; compute them if the stored ones are not current."""
    if are_current(layout, lexical):
        return read_stats(stats_path(layout))
    terms, numbers = _count(lexical)
    frequencies = dict(zip(*(terms[name].to_pylist() for name in _FREQUENCIES), strict=True))
    return CorpusStats(int(numbers["chunks"]), float(numbers["average_length"]), frequencies)


def refresh_stats(layout: Layout, lexical: Table) -> CommitResult:
    """Compute and store the statistics of the current tables; equal tables give equal bytes.

    `lexical` names the files. They are read again if a batch is written at the same time.
    """
    path = stats_path(layout)
    lock = FileLock(layout.lock(LEXICAL_STATS.asset, CORPUS))  # the last to write must be the last to read
    lock.acquire()
    try:
        for _ in range(_MAX_ATTEMPTS):
            tables = Table(lexical.asset, lexical.paths)
            fingerprint = tables_fingerprint(tables)
            if are_current(layout, tables):
                rows = pq.read_metadata(path).num_rows
                return CommitResult(path, rows, path.stat().st_size, changed=False)
            terms, numbers = _count(tables)
            if tables_fingerprint(Table(lexical.asset, lexical.paths)) == fingerprint:
                footer = Footer(VERSION, fingerprint, {}, extra=numbers)
                rows = write_parquet(path, LEXICAL_STATS, [terms], footer.as_metadata())
                return CommitResult(path, rows, path.stat().st_size, changed=True)
    finally:
        lock.release()
    raise TablesKeepChanging(
        f"lexical_stats: the tables changed during all {_MAX_ATTEMPTS} attempts. Run `ingest all` again."
    )


def _count(lexical: Table) -> tuple[pa.Table, Mapping[str, str]]:
    """Count terms in a streaming query: memory grows with the vocabulary, not with the corpus."""
    if not lexical.footers:
        zeros = {"chunks": "0", "documents": "0", "average_length": repr(0.0)}
        return LEXICAL_STATS.schema.empty_table(), zeros
    rows = Table(lexical.asset, tuple(lexical.footers)).scan()
    per_term = (
        rows.select("terms", "counts")
        .explode("terms", "counts")
        .drop_nulls()
        .group_by("terms")
        .agg(document_frequency=pl.len(), total_count=pl.col("counts").cast(pl.UInt64).sum())
        .sort("terms")
        .rename({"terms": "term"})
    )
    with detect_damaged_tables(lexical):
        terms = per_term.collect(engine="streaming").to_arrow().cast(LEXICAL_STATS.schema)
        chunks, length = rows.select(pl.len(), pl.col("length").cast(pl.Int64).sum()).collect().row(0)
    average, documents = length / chunks if chunks else 0.0, len(lexical.records)
    return terms, {"chunks": str(chunks), "documents": str(documents), "average_length": repr(average)}


def stats_numbers(layout: Layout) -> dict[str, float]:
    """Return chunks, documents and average length from the footer; empty without statistics."""
    footer = read_footer(stats_path(layout))
    names = ("chunks", "documents", "average_length")
    return {} if footer is None else {name: float(footer.extra[name]) for name in names}
