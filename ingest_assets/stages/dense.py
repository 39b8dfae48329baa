"""Chunks become dense vectors. An item is a document; its rows are its chunks' vectors."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from ingest_assets.embedders.batching import counting, vectors_made
from ingest_assets.embedders.cache import CACHE_FILE, VectorCache, open_cache
from ingest_assets.embedders.providers import close_dense, describe_dense, open_dense
from ingest_assets.settings.embeddings import CacheOptions, DenseFacts, DenseOptions, Truncation
from ingest_assets.stages.base import PRELOAD, Candidate, Finding, Stage, TableCheck
from ingest_assets.stages.inputs import (
    IDENTITY,
    chunked_documents,
    is_direction,
    of_chunk,
    read_chunks,
    require_vectors,
)
from ingest_assets.storage.parquet import naming_damage
from ingest_assets.storage.table import Table

_MIB = 1024 * 1024
_UNIT_TOLERANCE = 1e-4
_TEXTS_AT_ONCE = 128  # kept in the cache together: what a kill may cost of a document

Keep = Callable[[Sequence[str], np.ndarray], None]


def _vectors_are_sound(stage: "DenseStage", table: Table) -> Finding:
    dim = stage.facts.dim
    faults = faulty_vectors(table, dim, is_unit=stage.facts.normalized)
    metadata = {
        "dimension": faults.dimension or f"{dim}, as declared",
        "not_finite": len(faults.not_finite),
        "not_unit": len(faults.not_unit),
        "first": ", ".join((faults.not_finite + faults.not_unit)[:5]) or "none",
    }
    return Finding(faults.is_empty(), metadata)


@dataclass(frozen=True, slots=True)
class DenseStage(Stage):
    """One vector per chunk, from whichever provider the settings name.

    The provider opens with the first document of a process and stays open for its next batches; it goes with
    the process. Without a folder for the cache nothing is remembered.
    """

    name: ClassVar[str] = "dense"
    version: ClassVar[str] = "2"
    table: ClassVar[TableSpec] = dense_spec(384)  # of the packaged model
    preload: ClassVar[tuple[str, ...]] = PRELOAD
    checks: ClassVar[tuple[TableCheck, ...]] = (
        TableCheck(
            "vectors_are_unit_vectors",
            "Vectors have the model's dimension, no NaN, and unit length unless the settings leave it.",
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
        """Whether a long text is refused changes no vector, but whether there is one."""
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
        """End all that waits for the provider in this process; whoever embeds next opens it anew."""
        close_dense(self.options)

    def _vectors(self, chunks: pa.Table, facts: DenseFacts, context: ItemContext) -> np.ndarray:
        """As the provider gives them: those that are remembered, and those that are made now, each once."""
        texts: list[str] = chunks["contextualized"].to_pylist()
        cache, space = self._cache(), cache_space(facts, self.options.truncation)
        known: list[np.ndarray | None] = [None] * len(texts)
        if cache and not context.anew:
            known = [_of_length(facts.dim, vector) for vector in cache.get(space, texts)]
        missing: dict[str, int] = {}
        for index, text in enumerate(texts):
            if known[index] is None:
                missing.setdefault(text, index)
        if cache:
            context.count("cache_hits", len(texts) - len(missing))
            context.count("cache_misses", len(missing))
        by_text: dict[str, np.ndarray] = {}
        keep = functools.partial(cache.put, space) if cache else _keep_nothing
        for group in _groups(list(missing)):
            chunk_ids = [chunks["chunk_id"][missing[text]].as_py() for text in group]
            made = self._embed(group, chunk_ids, keep, context)
            by_text.update(zip(group, made, strict=True))
        return np.stack([by_text[text] if k is None else k for text, k in zip(texts, known, strict=True)])

    def _embed(
        self, texts: list[str], chunk_ids: Sequence[str], keep: Keep, context: ItemContext
    ) -> np.ndarray:
        """Vectors are kept also of a document that fails: they may have been paid for."""
        dim, provider = self.facts.dim, open_dense(self.options)
        try:
            with counting() as counts:
                given = provider.embed(texts, "passage")
        except ItemError as error:
            _keep_good(keep, texts, vectors_made(error), dim)
            raise of_chunk(error, chunk_ids) from error
        finally:
            for name, number in counts.items():
                context.count(name, number)
        try:
            vectors = require_vectors(given, dim, chunk_ids)
        except ContractBroken:
            rows = list(given) if isinstance(given, Sequence | np.ndarray) else []
            if len(rows) == len(texts):  # else nobody knows whose they are
                _keep_good(keep, texts, dict(enumerate(rows)), dim)
            raise
        keep(texts, vectors)
        return vectors

    def _cache(self) -> VectorCache | None:
        if not self.cache.enabled or not self.cache.path:
            return None
        return open_cache(Path(self.cache.path) / CACHE_FILE, self.cache.max_mebibytes * _MIB)


def _keep_good(keep: Keep, texts: Sequence[str], made: Mapping[int, Any], dim: int) -> None:
    """Those of the vectors, by the places of their texts, that could be stored."""
    good = {place: row for place, row in made.items() if is_direction(row, dim)}
    if good:
        keep([texts[place] for place in good], np.stack([np.asarray(row) for row in good.values()]))


def _keep_nothing(_texts: Sequence[str], _vectors: np.ndarray) -> None:
    """There is no cache."""


def _groups(texts: list[str]) -> Iterator[list[str]]:
    """Parts of a long document, so that one which fails near its end has paid for most of it already."""
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        yield texts[start : start + _TEXTS_AT_ONCE]


def _of_length(dim: int, remembered: np.ndarray | None) -> np.ndarray | None:
    """None for a vector of another length: a table could not hold it, so it is made anew."""
    return remembered if remembered is not None and len(remembered) == dim else None


def cache_space(facts: DenseFacts, truncation: Truncation) -> str:
    """Vectors are the same where all that decides them is; one of a cut text answers none that is refused."""
    return sha256_text(canonical_json([dict(facts.identity), dict(facts.libraries), "passage", truncation]))


# What must hold of the vectors of a table.


@dataclass(frozen=True, slots=True)
class VectorFaults:
    """Chunks whose vector breaks a rule."""

    dimension: str | None
    not_finite: list[str]
    not_unit: list[str]

    def is_empty(self) -> bool:
        return self.dimension is None and not self.not_finite and not self.not_unit


def faulty_vectors(table: Table, dim: int, *, is_unit: bool = True) -> VectorFaults:
    """Vectors of another dimension, with a NaN or infinity, or not of unit length where they should be."""
    wrong, not_finite, not_unit = None, [], []
    for path in table.paths:
        with naming_damage(path):
            kind = pq.read_schema(path).field("vector").type
        if not pa.types.is_fixed_size_list(kind) or kind.list_size != dim:
            wrong = f"{path.name} has {kind}, expected {dim} dimensions"
            continue
        with naming_damage(path):
            rows = pq.read_table(path, columns=["chunk_id", "vector"]).combine_chunks()
        vectors = _matrix(rows, dim)
        finite = np.isfinite(vectors).all(axis=1)
        norms = np.linalg.norm(vectors, axis=1)
        unit = np.abs(norms - 1) <= _UNIT_TOLERANCE if is_unit else norms > 0
        not_finite += rows.filter(pa.array(~finite))["chunk_id"].to_pylist()
        not_unit += rows.filter(pa.array(finite & ~unit))["chunk_id"].to_pylist()
    return VectorFaults(wrong, not_finite, not_unit)


def _matrix(rows: pa.Table, dim: int) -> np.ndarray:
    if rows.num_rows == 0:
        return np.empty((0, dim), dtype=np.float32)
    column = rows["vector"].chunk(0)
    return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dim)
