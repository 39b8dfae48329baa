"""Chunks become term counts. An item is a document; its rows are its chunks' terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from ingest_assets.embedders.lexical import term_counts
from ingest_assets.model.embedding import LexicalOptions
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import LEXICAL, TableSpec
from ingest_assets.stages.chunked import IDENTITY, chunked_documents, read_chunks
from ingest_assets.stages.stage import Candidate
from ingest_assets.storage.tables import Table


@dataclass(frozen=True, slots=True)
class LexicalStage:
    """Term counts per chunk; BM25 is computed when asked, never frozen into rows."""

    name: ClassVar[str] = "lexical"
    version: ClassVar[str] = "1"
    spec: ClassVar[TableSpec] = LEXICAL
    preload: ClassVar[tuple[str, ...]] = ()

    options: LexicalOptions = LexicalOptions()

    def config(self) -> Mapping[str, Any]:
        return self.options.model_dump(mode="json")

    def libraries(self) -> Mapping[str, str]:
        return {}

    def footer(self) -> Mapping[str, str]:
        return {"family": "lexical", "provider": "local"}

    def candidates(self, chunks: Table) -> Iterator[Candidate]:
        return chunked_documents(chunks)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Count one document's terms, chunk by chunk."""
        chunks = read_chunks(item)
        counted = [
            term_counts(text, self.options.min_term_chars) for text in chunks["contextualized"].to_pylist()
        ]
        identity = chunks.select(IDENTITY).to_pylist()
        rows = [row | counts for row, counts in zip(identity, counted, strict=True)]
        return pa.Table.from_pylist(rows, schema=self.spec.schema)
