"""Term counts of a batch in many languages: each document in its own, none the slower for the others."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest_assets.embedders.lexical import TermCounts, count_terms
from ingest_assets.embedders.terms import Analysis
from ingest_assets.model.items import WorkItem
from ingest_assets.model.schemas import CHUNKS
from ingest_assets.stages import lexical
from ingest_assets.stages.lexical import LANGUAGES_AT_ONCE, LexicalStage
from ingest_assets.storage.parquet import RowReader
from ingest_tests.stages.conftest import CONTEXT

LANGUAGES = ["en", "de", "fr", "es", "it", "nl", "sv", "da", "und", "ru"]
TEXT = "The bridges die Brücken les ponts los puentes i ponti de bruggen"
DOCUMENTS, CHUNKS_EACH = 60, 2
ROWS = DOCUMENTS * CHUNKS_EACH


@pytest.fixture
def chunks(tmp_path: Path) -> Path:
    """A chunks table, with what the stage reads of it."""
    documents = [f"doc {number // CHUNKS_EACH}" for number in range(ROWS)]
    columns = {
        "chunk_id": [f"chunk {number}" for number in range(ROWS)],
        "doc_id": documents,
        "ordinal": [number % CHUNKS_EACH for number in range(ROWS)],
        "contextualized": [f"{TEXT} {number}" for number in range(ROWS)],
    }
    path = tmp_path / "chunks.parquet"
    schema = pa.schema([CHUNKS.schema.field(name) for name in columns])
    pq.write_table(pa.table(columns, schema=schema), path)
    return path


def item(chunks: Path, document: int) -> WorkItem:
    """A document of the table; neighbours are in different languages."""
    language = LANGUAGES[document % len(LANGUAGES)]
    meta = {"row": document * CHUNKS_EACH, "rows": CHUNKS_EACH, "language": language}
    return WorkItem(f"doc {document}", "f", input_paths=(str(chunks),), meta=meta)


@pytest.mark.parametrize("rows_at_once", [512, 3])
def test_every_document_is_counted_in_its_own_language(
    chunks: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    """Whichever languages its neighbours are in, and wherever blocks end."""
    monkeypatch.setattr(lexical, "ROWS_AT_ONCE", rows_at_once)

    for document in range(DOCUMENTS):
        rows = LexicalStage().rows(item(chunks, document), CONTEXT)

        language = LANGUAGES[document % len(LANGUAGES)]
        counts = Counter(Analysis(1, True, True, language).terms(f"{TEXT} {document * CHUNKS_EACH}"))
        assert rows["terms"][0].as_py() == sorted(counts)
        assert rows["language"].to_pylist() == [language] * CHUNKS_EACH


def test_many_languages_side_by_side_are_read_once_and_counted_a_few_times(
    chunks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every document would count the whole block for its own few rows."""
    read, counted = [], []

    def noted_reader(path: Path, columns: list[str]) -> RowReader:
        read.append(path)
        return RowReader(path, columns)

    def noted_count(texts: pa.Array, analysis: Analysis) -> TermCounts:
        counted.append(len(texts))
        return count_terms(texts, analysis)

    monkeypatch.setattr(lexical, "RowReader", noted_reader)
    monkeypatch.setattr(lexical, "count_terms", noted_count)

    for document in range(DOCUMENTS):
        LexicalStage().rows(item(chunks, document), CONTEXT)

    assert len(read) == 1
    assert sum(counted) < (LANGUAGES_AT_ONCE + 1) * ROWS
