"""What BM25 must know of the whole corpus: how many chunks, how long they are, and in how many a term is.

Made from all lexical tables at once, and never part of their rows: a new batch changes no old file.
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
from ingest_assets.storage.table import Committed, Table, naming_damaged

VERSION = "1"
CORPUS = "corpus"
_TRIES = 5
_FREQUENCIES = ("term", "document_frequency")


class TablesKeepChanging(IngestError):
    """Batches were written all the while."""


def stats_path(layout: Layout) -> Path:
    """The one file of the statistics."""
    return layout.table(LEXICAL_STATS.asset, CORPUS)


def tables_mark(lexical: Table) -> str:
    """One hash of what the tables hold, whenever and wherever they were written."""
    facts = [
        [path.name, footer.config_hash, [[item, record.fingerprint] for item, record in footer.items.items()]]
        for path, footer in lexical.footers.items()
    ]
    return sha256_text(canonical_json([VERSION, facts]))


def are_current(layout: Layout, lexical: Table) -> bool:
    """True when the statistics are those of exactly these tables."""
    footer = read_footer(stats_path(layout))
    return footer is not None and footer.config_hash == tables_mark(lexical)


def stats_of(layout: Layout, lexical: Table) -> CorpusStats:
    """The statistics of exactly these tables: those stored, or counted now where they are of others."""
    if are_current(layout, lexical):
        return read_stats(stats_path(layout))
    terms, numbers = _counted(lexical)
    frequencies = dict(zip(*(terms[name].to_pylist() for name in _FREQUENCIES), strict=True))
    return CorpusStats(int(numbers["chunks"]), float(numbers["average_length"]), frequencies)


def refresh_stats(layout: Layout, lexical: Table) -> Committed:
    """Make the statistics of the tables as they are now; equal tables give equal bytes.

    `lexical` names the files; what is in them is read anew when a batch is written meanwhile.
    """
    path = stats_path(layout)
    lock = FileLock(layout.lock(LEXICAL_STATS.asset, CORPUS))  # the last to write must be the last to read
    lock.acquire()
    try:
        for _ in range(_TRIES):
            seen = Table(lexical.asset, lexical.paths)
            mark = tables_mark(seen)
            if are_current(layout, seen):
                rows = pq.read_metadata(path).num_rows
                return Committed(path, rows, path.stat().st_size, changed=False)
            terms, numbers = _counted(seen)
            if tables_mark(Table(lexical.asset, lexical.paths)) == mark:
                footer = Footer(VERSION, mark, {}, extra=numbers)
                rows = write_parquet(path, LEXICAL_STATS, [terms], footer.as_metadata())
                return Committed(path, rows, path.stat().st_size, changed=True)
    finally:
        lock.release()
    raise TablesKeepChanging(
        "lexical_stats: the lexical tables changed whenever they were read; run it again."
    )


def _counted(lexical: Table) -> tuple[pa.Table, Mapping[str, str]]:
    """Term by term, streamed: memory grows with the vocabulary, not with the corpus."""
    if not lexical.footers:
        nothing = {"chunks": "0", "documents": "0", "average_length": repr(0.0)}
        return LEXICAL_STATS.schema.empty_table(), nothing
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
    with naming_damaged(lexical):
        terms = per_term.collect(engine="streaming").to_arrow().cast(LEXICAL_STATS.schema)
        chunks, length = rows.select(pl.len(), pl.col("length").cast(pl.Int64).sum()).collect().row(0)
    average, documents = length / chunks if chunks else 0.0, len(lexical.records)
    return terms, {"chunks": str(chunks), "documents": str(documents), "average_length": repr(average)}


def stats_numbers(layout: Layout) -> dict[str, float]:
    """Chunks, documents and average length, as the footer says; nothing where there are no statistics."""
    footer = read_footer(stats_path(layout))
    names = ("chunks", "documents", "average_length")
    return {} if footer is None else {name: float(footer.extra[name]) for name in names}
