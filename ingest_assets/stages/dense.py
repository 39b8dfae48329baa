"""Chunks become dense vectors. An item is a document; its rows are its chunks' vectors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ingest_assets.embedders.registry import describe_dense, open_dense
from ingest_assets.model.embedding import DenseFacts, DenseOptions
from ingest_assets.model.errors import ContractBroken
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import TableSpec, dense_spec
from ingest_assets.stages.chunked import IDENTITY, chunked_documents, read_chunks
from ingest_assets.stages.stage import PRELOAD, Candidate
from ingest_assets.storage.tables import Table


@dataclass(frozen=True, slots=True)
class DenseStage:
    """One unit vector per chunk, from whichever provider the settings name."""

    name: ClassVar[str] = "dense"
    version: ClassVar[str] = "1"
    preload: ClassVar[tuple[str, ...]] = PRELOAD

    options: DenseOptions = DenseOptions()

    @property
    def facts(self) -> DenseFacts:
        return describe_dense(self.options)

    @property
    def spec(self) -> TableSpec:
        return dense_spec(self.facts.dim)

    def config(self) -> Mapping[str, Any]:
        return self.facts.identity

    def libraries(self) -> Mapping[str, str]:
        return self.facts.libraries

    def footer(self) -> Mapping[str, str]:
        facts = self.facts
        return {
            "family": "dense",
            "provider": facts.provider,
            "model_id": facts.model_id,
            "dim": str(facts.dim),
            "normalized": str(facts.normalized).lower(),
        }

    def candidates(self, chunks: Table) -> Iterator[Candidate]:
        return chunked_documents(chunks)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Embed one document's chunks."""
        chunks = read_chunks(item)
        vectors = open_dense(self.options).embed(chunks["contextualized"].to_pylist())
        norms = np.linalg.norm(vectors, axis=1).astype(np.float32)
        _require_vectors(vectors, norms, chunks)
        unit = np.ascontiguousarray(vectors / norms[:, None], dtype=np.float32)
        schema = self.spec.schema
        column = pa.FixedSizeListArray.from_arrays(pa.array(unit.ravel()), type=schema.field("vector").type)
        table = chunks.select(IDENTITY).append_column("vector", column).append_column("norm", pa.array(norms))
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
