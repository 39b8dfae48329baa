"""Chunks become vectors, one stage per family. An item is a document; its rows are its chunks' vectors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ingest_assets.embedders.lexical import term_counts
from ingest_assets.embedders.models import model_folder
from ingest_assets.model.embedding import DenseOptions, LexicalOptions
from ingest_assets.model.errors import ContractBroken
from ingest_assets.model.identity import installed_versions
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import LEXICAL, TableSpec, dense_spec
from ingest_assets.stages.stage import PRELOAD, Candidate
from ingest_assets.storage.parquet import RowReader
from ingest_assets.storage.tables import Table, row_offsets

_IDENTITY = ["chunk_id", "doc_id", "ordinal"]


def chunked_documents(chunks: Table) -> Iterator[Candidate]:
    """One candidate per chunked document, with the rows its chunks stand in."""
    for path, footer in chunks.footers.items():
        offsets = row_offsets(footer.items)
        for doc_id, record in footer.items.items():
            meta = {"row": offsets[doc_id], "rows": record.rows}
            yield Candidate(doc_id, record.fingerprint, meta, (str(path),), record.rows)


def read_chunks(item: WorkItem) -> pa.Table:
    """Ids and contextualized text of one document's chunks."""
    reader = RowReader(Path(item.input_paths[0]), [*_IDENTITY, "contextualized"])
    try:
        rows = reader.read(item.meta["row"], item.meta["rows"])
    finally:
        reader.close()
    if set(rows["doc_id"].to_pylist()) != {item.item_id}:
        raise ContractBroken(
            f"The chunks of {item.item_id!r} moved while they were read; run the batch again."
        )
    return rows


@dataclass(frozen=True, slots=True)
class DenseStage:
    """One unit vector per chunk, from a transformers model."""

    name: ClassVar[str] = "dense"
    version: ClassVar[str] = "1"
    preload: ClassVar[tuple[str, ...]] = PRELOAD

    options: DenseOptions = DenseOptions()

    @property
    def spec(self) -> TableSpec:
        return dense_spec(model_folder(self.options.model).dim)

    def config(self) -> Mapping[str, Any]:
        return {
            **self.options.model_dump(mode="json"),
            "model": model_folder(self.options.model).content_hash,
        }

    def libraries(self) -> Mapping[str, str]:
        return installed_versions("torch", "transformers", "tokenizers")

    def footer(self) -> Mapping[str, str]:
        model = model_folder(self.options.model)
        return {
            "family": "dense",
            "provider": "local",
            "model_id": model.model_id,
            "dim": str(model.dim),
            "normalized": "true",
        }

    def candidates(self, chunks: Table) -> Iterator[Candidate]:
        return chunked_documents(chunks)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Embed one document's chunks."""
        from ingest_assets.embedders.dense import open_embedder

        chunks = read_chunks(item)
        vectors = open_embedder(self.options).embed(chunks["contextualized"].to_pylist())
        norms = np.linalg.norm(vectors, axis=1).astype(np.float32)
        _require_vectors(vectors, norms, chunks)
        unit = np.ascontiguousarray(vectors / norms[:, None], dtype=np.float32)
        schema = self.spec.schema
        column = pa.FixedSizeListArray.from_arrays(pa.array(unit.ravel()), type=schema.field("vector").type)
        table = (
            chunks.select(_IDENTITY).append_column("vector", column).append_column("norm", pa.array(norms))
        )
        return table.cast(schema)


def _require_vectors(vectors: np.ndarray, norms: np.ndarray, chunks: pa.Table) -> None:
    """A vector that is not a direction would poison every search; name the chunk instead."""
    if len(vectors) != chunks.num_rows:
        raise ContractBroken(f"The model gave {len(vectors)} vectors for {chunks.num_rows} chunks.")
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if len(bad):
        raise ContractBroken(
            f"The vector of chunk {chunks['chunk_id'][int(bad[0])].as_py()} is zero or not finite."
        )


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
        identity = chunks.select(_IDENTITY).to_pylist()
        rows = [row | counts for row, counts in zip(identity, counted, strict=True)]
        return pa.Table.from_pylist(rows, schema=self.spec.schema)
