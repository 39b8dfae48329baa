"""Dense vectors: an item is a document, its rows are its chunks' vectors."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.core.errors import ContractBroken, ItemError
from ingest_assets.core.identity import canonical_json, sha256_text
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.schemas import TableSpec, dense_spec
from ingest_assets.embedders.batcher import collect_counts, partial_vectors
from ingest_assets.embedders.cache import CACHE_FILE, open_cache
from ingest_assets.embedders.providers import close_dense, describe_dense, open_dense
from ingest_assets.settings.embeddings import CacheOptions, DenseFacts, DenseOptions, Truncation
from ingest_assets.stages.base import PRELOAD, Candidate, Finding, Stage, TableCheck
from ingest_assets.stages.inputs import IDENTITY, chunked_documents, read_chunks, with_chunk_id
from ingest_assets.storage.parquet import detect_damage
from ingest_assets.storage.table import Table

_MIB = 1024 * 1024
_UNIT_TOLERANCE = 1e-4
_TEXTS_PER_WRITE = 128  # a killed worker loses at most this many vectors that the cache does not have yet

Store = Callable[[Sequence[str], np.ndarray], None]


def _vectors_are_sound(stage: "DenseStage", table: Table) -> Finding:
    dim = stage.facts.dim
    faults = faulty_vectors(table, dim, is_unit=stage.facts.normalized)
    metadata = {
        "dimension": faults.dimension or f"{dim}, as declared",
        "not_finite": len(faults.not_finite),
        "not_unit": len(faults.not_unit),
        "first": ", ".join((faults.not_finite + faults.not_unit)[:5]) or "none",
    }
    return Finding(not (faults.dimension or faults.not_finite or faults.not_unit), metadata)


@dataclass(frozen=True, slots=True)
class DenseStage(Stage):
    """One vector per chunk, from the provider in the settings.

    A process opens the provider for its first document and keeps it open for all batches. Without a cache
    folder, vectors are not cached.
    """

    name: ClassVar[str] = "dense"
    version: ClassVar[str] = "2"
    table: ClassVar[TableSpec] = dense_spec(384)  # of the packaged model
    preload: ClassVar[tuple[str, ...]] = PRELOAD
    checks: ClassVar[tuple[TableCheck, ...]] = (
        TableCheck(
            "vectors_are_unit_vectors",
            "Vectors have the model's dimension, no NaN, and unit length unless the settings turn it off.",
            _vectors_are_sound,
        ),
    )

    options: DenseOptions = DenseOptions()
    cache: CacheOptions = CacheOptions()

    @property
    def facts(self) -> DenseFacts:
        return describe_dense(self.options)

    @property
    def spec(self) -> TableSpec:
        return dense_spec(self.facts.dim)

    def config(self) -> Mapping[str, Any]:
        """Return the model's identity, and the truncation: it decides whether a long text has a vector."""
        return {**self.facts.identity, "truncation": self.options.truncation}

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
        facts = self.facts
        vectors = self._vectors(chunks, facts, context)
        norms = np.linalg.norm(vectors, axis=1).astype(np.float32)
        if facts.normalized:
            vectors = vectors / norms[:, None]
        schema = self.spec.schema
        flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
        column = pa.FixedSizeListArray.from_arrays(flat, type=schema.field("vector").type)
        table = chunks.select(IDENTITY).append_column("vector", column).append_column("norm", pa.array(norms))
        return table.cast(schema)

    def release(self) -> None:
        """Close the provider of this process to end all waits for it. The next document opens a new one."""
        close_dense(self.options)

    def _vectors(self, chunks: pa.Table, facts: DenseFacts, context: ItemContext) -> np.ndarray:
        """Return the provider's vectors from the cache; embed each missing text once."""
        texts: list[str] = chunks["contextualized"].to_pylist()
        cache, space = None, cache_space(facts, self.options.truncation)
        if self.cache.enabled and self.cache.path:
            cache = open_cache(Path(self.cache.path) / CACHE_FILE, self.cache.max_mebibytes * _MIB)
        store: Store = functools.partial(cache.put, space) if cache else lambda _texts, _vectors: None
        by_text: dict[str, np.ndarray] = {}
        if cache and not context.force:
            for text, vector in zip(texts, cache.get(space, texts), strict=True):
                if vector is not None and len(vector) == facts.dim:  # another length does not fit the table
                    by_text[text] = vector
        missing: dict[str, int] = {}
        for index, text in enumerate(texts):
            if text not in by_text:
                missing.setdefault(text, index)
        if cache:
            context.count("cache_hits", len(texts) - len(missing))
            context.count("cache_misses", len(missing))
        to_embed = list(missing)
        for start in range(0, len(to_embed), _TEXTS_PER_WRITE):
            group = to_embed[start : start + _TEXTS_PER_WRITE]
            chunk_ids = [chunks["chunk_id"][missing[text]].as_py() for text in group]
            by_text.update(zip(group, self._embed(group, chunk_ids, store, context), strict=True))
        return np.stack([by_text[text] for text in texts])

    def _embed(
        self, texts: list[str], chunk_ids: Sequence[str], store: Store, context: ItemContext
    ) -> np.ndarray:
        """Embed texts and cache their vectors, even if the document fails: they may have cost money."""
        dim, provider = self.facts.dim, open_dense(self.options)
        try:
            with collect_counts() as counts:
                returned = provider.embed(texts, "passage")
        except ItemError as error:
            _store_valid(store, texts, partial_vectors(error), dim)
            raise with_chunk_id(error, chunk_ids) from error
        finally:
            for name, number in counts.items():
                context.count(name, number)
        try:
            vectors = require_vectors(returned, dim, chunk_ids)
        except ContractBroken:
            rows = list(returned) if isinstance(returned, Sequence | np.ndarray) else []
            if len(rows) == len(texts):  # otherwise it is unknown which vector is whose
                _store_valid(store, texts, dict(enumerate(rows)), dim)
            raise
        store(texts, vectors)
        return vectors


def _store_valid(store: Store, texts: Sequence[str], rows: Mapping[int, Any], dim: int) -> None:
    """Store the valid ones of these vectors, which are given by the index of their text."""
    valid: dict[int, np.ndarray] = {}
    for index, row in rows.items():
        # A package's provider can return anything.
        with suppress(TypeError, ValueError), np.errstate(over="ignore", invalid="ignore"):
            norm = np.linalg.norm(np.asarray(row, dtype=np.float32))
            if np.shape(row) == (dim,) and np.isfinite(norm) and norm > 0:
                valid[index] = np.asarray(row)
    if valid:
        store([texts[index] for index in valid], np.stack(list(valid.values())))


def cache_space(facts: DenseFacts, truncation: Truncation) -> str:
    """Return the hash that separates vectors of other models, versions or truncation in the cache."""
    return sha256_text(canonical_json([dict(facts.identity), dict(facts.libraries), "passage", truncation]))


# Vectors are checked before they are stored: an invalid one would break every search.


def require_vectors(returned: Any, dim: int, chunk_ids: Sequence[str]) -> np.ndarray:
    """Return finite float32 vectors, one per chunk; raise `ContractBroken` with the first invalid chunk."""
    number = len(returned) if hasattr(returned, "__len__") else 0
    if number != len(chunk_ids):
        first = chunk_ids[min(number, len(chunk_ids) - 1)]
        missing = f"; the first without a vector is {first}" if number < len(chunk_ids) else ""
        raise ContractBroken(
            f"The model returned {number} vectors for {len(chunk_ids)} chunks{missing}.",
            detail={"chunk_id": first},
        )
    for row, chunk_id in zip(returned, chunk_ids, strict=True):
        if np.shape(row) != (dim,):
            raise _invalid(f"has the shape {np.shape(row)}, expected {dim} numbers", chunk_id)
    try:
        vectors = np.asarray(returned, dtype=np.float32)
    except (TypeError, ValueError):
        raise _invalid("does not consist of numbers", chunk_ids[0]) from None
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(vectors, axis=1)
    for index in np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))[:1]:
        fault = "is all zeros" if norms[index] == 0 else "is not finite, or its length overflows"
        raise _invalid(fault, chunk_ids[int(index)])
    return vectors


def _invalid(fault: str, chunk_id: str) -> ContractBroken:
    return ContractBroken(f"The vector of chunk {chunk_id} {fault}.", detail={"chunk_id": chunk_id})


# The check of a table's vectors.


@dataclass(frozen=True, slots=True)
class VectorFaults:
    """Chunks with an invalid vector."""

    dimension: str | None
    not_finite: list[str]
    not_unit: list[str]


def faulty_vectors(table: Table, dim: int, *, is_unit: bool = True) -> VectorFaults:
    """Return the vectors that have another dimension, are not finite, or do not have unit length."""
    wrong, not_finite, not_unit = None, [], []
    for path in table.paths:
        with detect_damage(path):
            kind = pq.read_schema(path).field("vector").type
        if not pa.types.is_fixed_size_list(kind) or kind.list_size != dim:
            wrong = f"{path.name} has {kind}, expected {dim} dimensions"
            continue
        with detect_damage(path):
            rows = pq.read_table(path, columns=["chunk_id", "vector"])
        flat = rows["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors = flat.reshape(-1, dim)
        finite = np.isfinite(vectors).all(axis=1)
        norms = np.linalg.norm(vectors, axis=1)
        unit = np.abs(norms - 1) <= _UNIT_TOLERANCE if is_unit else norms > 0
        not_finite += rows.filter(pa.array(~finite))["chunk_id"].to_pylist()
        not_unit += rows.filter(pa.array(finite & ~unit))["chunk_id"].to_pylist()
    return VectorFaults(wrong, not_finite, not_unit)
