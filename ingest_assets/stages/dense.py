"""Chunks become dense vectors. An item is a document; its rows are its chunks' vectors."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ingest_assets.embedders.batching import vectors_made
from ingest_assets.embedders.counting import counting
from ingest_assets.embedders.registry import close_dense, describe_dense, open_dense
from ingest_assets.embedders.vector_cache import CACHE_FILE, VectorCache, open_cache
from ingest_assets.model.embedding import CacheOptions, DenseFacts, DenseOptions, Truncation
from ingest_assets.model.errors import ContractBroken, ItemError
from ingest_assets.model.identity import canonical_json, sha256_text
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import TableSpec, dense_spec
from ingest_assets.stages.chunked import IDENTITY, chunked_documents, read_chunks
from ingest_assets.stages.stage import PRELOAD, Candidate
from ingest_assets.stages.vectors import is_direction, of_chunk, require_vectors
from ingest_assets.storage.tables import Table

_MIB = 1024 * 1024
_TEXTS_AT_ONCE = 128  # kept in the cache together: what a kill may cost of a document

Keep = Callable[[Sequence[str], np.ndarray], None]


@dataclass(frozen=True, slots=True)
class DenseStage:
    """One vector per chunk, from whichever provider the settings name.

    The provider opens with the first document of a process and stays open for its next batches; it goes with
    the process. Without a folder for the cache nothing is remembered.
    """

    name: ClassVar[str] = "dense"
    version: ClassVar[str] = "2"
    preload: ClassVar[tuple[str, ...]] = PRELOAD

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

    def let_go(self) -> None:
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
