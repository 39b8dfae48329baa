"""Sparse vectors: an item is a document, its rows are its chunks' weighted vocabulary entries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa

from ingest_assets.core.errors import ContractBroken, ItemError
from ingest_assets.core.identity import installed_versions
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.schemas import SPARSE, TableSpec
from ingest_assets.embedders.sparse import SparseVector, open_sparse, read_sparse_model
from ingest_assets.settings.embeddings import SparseOptions
from ingest_assets.stages.base import PRELOAD, Candidate, Finding, Stage, TableCheck
from ingest_assets.stages.inputs import IDENTITY, chunked_documents, read_chunks, with_chunk_id
from ingest_assets.storage.table import Table

_NOT_IN_CONFIG = {"device", "batch_tokens"}


def _weights_are_sound(stage: "SparseStage", table: Table) -> Finding:
    empty = table.read(lambda rows: rows.filter(pl.col("indices").list.len() == 0).select(pl.len())).item()
    return Finding.of(faulty_weights(table, int(stage.footer()["dim"])), without_entries=empty)


@dataclass(frozen=True, slots=True)
class SparseStage(Stage):
    """Weighted vocabulary entries per chunk, from a model of the SPLADE kind.

    A chunk without any entries, such as punctuation only, has a row with empty lists.
    """

    name: ClassVar[str] = "sparse"
    version: ClassVar[str] = "2"
    table: ClassVar[TableSpec] = SPARSE
    preload: ClassVar[tuple[str, ...]] = PRELOAD
    checks: ClassVar[tuple[TableCheck, ...]] = (
        TableCheck(
            "weights_are_positive_numbers",
            "Weights are finite and positive, one per entry; entries ascend and are within the vocabulary.",
            _weights_are_sound,
        ),
    )

    options: SparseOptions

    def __post_init__(self) -> None:
        """Raise `ConfigError` for a model that cannot be used."""
        if self.options.model:
            read_sparse_model(self.options.model)

    def config(self) -> Mapping[str, Any]:
        """Return the options without device and batch size, which change weights by rounding only."""
        options = self.options.model_dump(mode="json", exclude=_NOT_IN_CONFIG)
        return {**options, "model": read_sparse_model(self.options.model).content_hash}

    def libraries(self) -> Mapping[str, str]:
        return installed_versions("torch", "transformers", "tokenizers")

    def footer(self) -> Mapping[str, str]:
        model = read_sparse_model(self.options.model)
        return {"family": "sparse", "provider": "local", "model_id": model.model_id, "dim": str(model.dim)}

    def candidates(self, chunks: Table) -> Iterator[Candidate]:
        return chunked_documents(chunks)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Embed one document's chunks."""
        chunks = read_chunks(item)
        chunk_ids = chunks["chunk_id"].to_pylist()
        try:
            vectors = open_sparse(self.options).embed(chunks["contextualized"].to_pylist())
        except ItemError as error:
            raise with_chunk_id(error, chunk_ids) from error
        require_weights(vectors, chunk_ids)
        offsets = pa.array(np.cumsum([0, *(len(indices) for indices, _ in vectors)]), pa.int32())
        table = chunks.select(IDENTITY)
        for part, name in enumerate(("indices", "values")):
            flat = pa.array(np.concatenate([vector[part] for vector in vectors]))
            table = table.append_column(name, pa.ListArray.from_arrays(offsets, flat))
        return table.cast(self.spec.schema)


def require_weights(vectors: Sequence[SparseVector], chunk_ids: Sequence[str]) -> None:
    """Raise `ContractBroken` for a chunk whose weights are not finite: they would break every search."""
    if len(vectors) != len(chunk_ids):
        raise ContractBroken(f"The model returned {len(vectors)} vectors for {len(chunk_ids)} chunks.")
    for chunk_id, (_, weights) in zip(chunk_ids, vectors, strict=True):
        if not np.isfinite(weights).all():
            raise ContractBroken(f"The sparse vector of chunk {chunk_id} is not finite.")


def faulty_weights(table: Table, dim: int) -> list[str]:
    """Return the chunks with a weight that is not finite and positive, or with entries out of order."""
    indices, values = pl.col("indices"), pl.col("values")
    is_number = pl.element().is_finite() & (pl.element() > 0)
    is_sound = (
        (indices.list.len() == values.list.len())
        & values.list.eval(is_number).list.all()
        & indices.list.eval(pl.element().cast(pl.Int64).diff().fill_null(1) > 0).list.all()
        & (indices.list.max().fill_null(0) < dim)
    )
    return table.read(lambda rows: rows.filter(~is_sound).select("chunk_id")).to_series().to_list()
