"""Lexical rows and statistics of some texts, without a home."""

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from ingest_assets.core.schemas import LEXICAL
from ingest_assets.search.bm25 import CorpusStats
from ingest_assets.search.terms import analysis_for
from ingest_assets.settings.embeddings import LexicalOptions
from ingest_assets.stages.lexical import count_terms


def lexical_rows(texts: Mapping[str, str], options: LexicalOptions, language: str = "en") -> pa.Table:
    """Return the rows of chunks with these ids and texts, all of one document."""
    analysis = analysis_for(options, language)
    columns = {
        "chunk_id": pa.array(texts, pa.string()),
        "doc_id": pa.array(["doc"] * len(texts)),
        "ordinal": pa.array(range(len(texts)), pa.int32()),
        **count_terms(texts.values(), analysis),
        "language": pa.array([analysis.language or None] * len(texts), pa.string()),
    }
    return pa.table(columns, schema=LEXICAL.schema)


def stats_by_hand(rows: pa.Table) -> CorpusStats:
    """Return the expected statistics."""
    frequencies = Counter(term for terms in rows["terms"].to_pylist() for term in terms)
    lengths = rows["length"].to_pylist()
    return CorpusStats(len(lengths), sum(lengths) / len(lengths), frequencies)
