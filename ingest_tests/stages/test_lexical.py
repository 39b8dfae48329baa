"""Term counts of a batch in many languages."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest_assets.core.items import WorkItem
from ingest_assets.core.schemas import CHUNKS
from ingest_assets.search.terms import Analysis
from ingest_assets.stages.lexical import LexicalStage
from ingest_tests.stages.conftest import CONTEXT

LANGUAGES = ["en", "de", "fr", "es", "it", "nl", "sv", "da", "und", "ru"]
TEXT = "The bridges die Brücken les ponts los puentes i ponti de bruggen"
DOCUMENTS, CHUNKS_EACH = 60, 2
ROWS = DOCUMENTS * CHUNKS_EACH


@pytest.fixture
def chunks(tmp_path: Path) -> Path:
    """A chunks table with the columns that the stage reads."""
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


def test_every_document_is_counted_in_its_own_language(chunks: Path) -> None:
    """Whatever the languages of its neighbours are."""
    for document in range(DOCUMENTS):
        rows = LexicalStage().rows(item(chunks, document), CONTEXT)

        language = LANGUAGES[document % len(LANGUAGES)]
        counts = Counter(Analysis(1, True, True, language).terms(f"{TEXT} {document * CHUNKS_EACH}"))
        assert rows["terms"][0].as_py() == sorted(counts)
        assert rows["language"].to_pylist() == [language] * CHUNKS_EACH
