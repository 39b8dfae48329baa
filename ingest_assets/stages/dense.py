"""Chunks become dense vectors. An item is a document; its rows are its chunks' vectors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ingest_assets.embedders.models import model_folder
from ingest_assets.model.embedding import DenseOptions
from ingest_assets.model.errors import ContractBroken
from ingest_assets.model.identity import installed_versions
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import TableSpec, dense_spec
from ingest_assets.stages.chunked import IDENTITY, chunked_documents, read_chunks
from ingest_assets.stages.stage import PRELOAD, Candidate
from ingest_assets.storage.tables import Table


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
