"""The dense stage: whatever a provider returns, a bad chunk fails only its own document, and is named."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingest_assets.core.errors import ContractBroken, ItemError
from ingest_assets.core.items import ItemContext
from ingest_assets.core.schemas import CHUNKS
from ingest_assets.embedders.cache import CACHE_FILE, VectorCache
from ingest_assets.embedders.errors import TextTooLong
from ingest_assets.embedders.providers import close_dense, dense_factory
from ingest_assets.settings.embeddings import CacheOptions, DenseOptions
from ingest_assets.stages.dense import DenseStage, cache_space
from ingest_assets.storage.table import Table
from ingest_tests.embedders.tiny_models import make_model
from ingest_tests.packages import offer_providers
from ingest_tests.rows import blank_rows
from ingest_tests.stages.conftest import item_of, write_table

MODULE = """
import numpy as np
from ingest_assets.embedders.batcher import count
from ingest_assets.embedders.errors import TextTooLong
from ingest_assets.settings.embeddings import DenseFacts

ASKED = []

class Odd:
    def __init__(self, model_id, dim):
        self.model_id, self.dim = model_id, dim
    def embed(self, texts, kind="passage"):
        ASKED.extend(texts)
        for index, text in enumerate(texts):
            if "long" in text:
                raise TextTooLong("too long", detail={"index": index})
        count("tokens", len(texts))
        if self.model_id != "odd@1":
            return np.full((len(texts), self.dim), 7, dtype=np.float32)
        rows = [[np.nan, 1] if "nan" in t else [0, 0] if "zero" in t else [3, 4] for t in texts]
        if any("nothing" in text for text in texts):
            return None
        if any("wide" in text for text in texts):
            return np.ones((len(texts), 3), dtype=np.float32)
        return np.array(rows[: 1 if any("short" in t for t in texts) else None], dtype=np.float32)
    def close(self):
        pass

class Kind:
    def describe(self, options):
        identity = {"model": "odd", "prefix": options.passage_prefix}
        return DenseFacts("odd", "odd@1", 2, None, None, options.normalize, identity, {"odd": "1"})
    def open(self, options):
        return Odd("odd@1", 2)

class Silent:
    def describe(self, options):
        name = f"silent {options.model}"
        return DenseFacts("silent", name, options.dim, None, None, options.normalize, {})
    def open(self, options):
        return Odd(f"silent {options.model}", options.dim)
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Install a provider package whose texts select its faults; return the texts it was asked for."""
    providers = {"odd": "Kind", "silent": "Silent", "other": "Silent"}
    monkeypatch.syspath_prepend(str(offer_providers(tmp_path / "site", "odd-provider", MODULE, providers)))
    dense_factory.cache_clear()
    dense_factory("odd")
    yield sys.modules["odd_provider"].ASKED
    close_dense()
    dense_factory.cache_clear()
    del sys.modules["odd_provider"]


def stage(**changes: Any) -> DenseStage:
    """Return a stage with the provider of that package."""
    cache = changes.pop("cache", CacheOptions())
    return DenseStage(DenseOptions(**{"provider": "odd", **changes}), cache)


def chunks_of(tmp_path: Path, **documents: list[str]) -> Table:
    """Write a chunks table; a chunk's id is its document and number."""
    tables = {
        doc: pa.concat_tables(
            blank_rows(CHUNKS, doc_id=doc, ordinal=n, chunk_id=f"{doc}-{n}", contextualized=text)
            for n, text in enumerate(texts)
        )
        for doc, texts in documents.items()
    }
    return write_table(tmp_path / "chunks.parquet", CHUNKS, tables)


def run(dense: DenseStage, table: Table, home: Path, context: ItemContext | None = None) -> dict[str, Any]:
    """Return the rows of each document, or its error."""
    done: dict[str, Any] = {}
    for candidate in dense.candidates(table):
        try:
            done[candidate.item_id] = dense.rows(item_of(dense, candidate, home), context or ItemContext())
        except ItemError as error:
            done[candidate.item_id] = error
    return done


@pytest.mark.parametrize(
    ("fault", "says", "lost"),
    [
        ("nan", "The vector of chunk bad-1 is not finite", ["nan"]),
        ("zero", "The vector of chunk bad-1 is all zeros", ["zero"]),
        ("wide", "The vector of chunk bad-0 has the shape", ["two", "wide"]),
        ("short", "returned 1 vectors for 2 chunks; the first without a vector is bad-1", ["two", "short"]),
        (
            "nothing",
            "returned 0 vectors for 2 chunks; the first without a vector is bad-0",
            ["two", "nothing"],
        ),
    ],
)
def test_a_bad_vector_fails_only_its_own_document(
    asked: list[str], tmp_path: Path, fault: str, says: str, lost: list[str]
) -> None:
    """With a contract error that names the chunk; valid vectors are cached if their texts are known."""
    cached = CacheOptions(path=str(tmp_path / "cache"))
    table = chunks_of(tmp_path, good=["one"], bad=["two", fault], fine=["three"])

    done = run(stage(cache=cached), table, tmp_path)

    assert isinstance(done["bad"], ContractBroken)
    assert says in str(done["bad"])
    assert (done["good"].num_rows, done["fine"].num_rows) == (1, 1)
    asked.clear()
    assert isinstance(run(stage(cache=cached), table, tmp_path)["bad"], ContractBroken)
    assert asked == lost


def test_an_error_names_the_chunk_of_a_refused_text(asked: list[str], tmp_path: Path) -> None:
    """The provider's error has an index only."""
    error = run(stage(), chunks_of(tmp_path, a=["one", "long"]), tmp_path)["a"]

    assert (error.code, str(error)) == ("E_TEXT_TOO_LONG", "Chunk a-1: too long")
    assert error.detail == {"chunk_id": "a-1"}


def test_each_text_is_embedded_once(asked: list[str], tmp_path: Path) -> None:
    """Within and across documents; a forced run embeds all again, and so do other settings."""
    cached = CacheOptions(path=str(tmp_path / "cache"))
    table = chunks_of(tmp_path, a=["one", "two", "one"], b=["two", "three"])
    context = ItemContext()

    first = run(stage(cache=cached), table, tmp_path, context)
    assert asked == ["one", "two", "three"]
    assert context.counts == {"cache_hits": 2, "cache_misses": 3, "tokens": 3}
    again = run(stage(cache=cached), table, tmp_path)
    assert len(asked) == 3
    assert {doc: rows.equals(first[doc]) for doc, rows in again.items()} == {"a": True, "b": True}
    run(stage(cache=cached), table, tmp_path, ItemContext(force=True))
    assert len(asked) == 7
    run(stage(cache=cached, passage_prefix="p"), table, tmp_path)
    assert len(asked) == 10


@pytest.mark.parametrize(("normalize", "first"), [(True, [0.6, 0.8]), (False, [3.0, 4.0])])
def test_vectors_are_scaled_if_the_provider_says_so(
    asked: list[str], tmp_path: Path, normalize: bool, first: list[float]
) -> None:
    """Their original length is stored in `norm`."""
    rows = run(stage(normalize=normalize), chunks_of(tmp_path, a=["one"]), tmp_path)["a"]

    np.testing.assert_allclose(rows["vector"].to_pylist(), [first], rtol=1e-6)
    assert rows["norm"].to_pylist() == [5.0]
    assert stage(normalize=normalize).footer() == {
        "family": "dense",
        "provider": "odd",
        "model_id": "odd@1",
        "dim": "2",
        "normalized": str(normalize).lower(),
    }


def test_the_fingerprint_follows_the_provider(asked: list[str]) -> None:
    """And the truncation, which decides whether a long text has a row."""
    plain = stage()

    assert plain.config() == {
        "entry_point": "odd",
        "provider": "odd",
        "model_id": "odd@1",
        "dim": 2,
        "normalized": True,
        "passage_prefix": "",
        "identity": {"model": "odd", "prefix": None},
        "truncation": "cut",
    }
    assert plain.libraries() == {"odd": "1"}
    assert stage(batch_tokens=9, device="cpu").config() == plain.config()


@pytest.mark.parametrize(
    "change", [{"model": "b"}, {"dim": 3}, {"normalize": False}, {"provider": "other"}], ids=str
)
def test_models_of_a_package_without_identity_do_not_share_vectors(
    asked: list[str], tmp_path: Path, change: dict[str, Any]
) -> None:
    """Another model is another set, and has other vectors in the cache."""
    cached = CacheOptions(path=str(tmp_path / "cache"))
    settings: dict[str, Any] = {"provider": "silent", "model": "a", "dim": 2, "cache": cached}
    before, after = stage(**settings), stage(**settings | change)
    table = chunks_of(tmp_path, a=["one"])

    run(before, table, tmp_path)
    rows = run(after, table, tmp_path)["a"]

    assert before.config() != after.config()
    assert asked == ["one", "one"]
    assert len(rows["vector"][0]) == after.facts.dim


def test_the_cached_vector_of_a_cut_text_is_not_used_with_truncation_refuse(tmp_path: Path) -> None:
    """Rows must not depend on the cache."""
    cached = CacheOptions(path=str(tmp_path / "cache"))
    settings: dict[str, Any] = {"provider": "local", "model": make_model(tmp_path / "model"), "cache": cached}
    table = chunks_of(tmp_path, a=["the hive", "soup " * 500])

    assert run(stage(**settings), table, tmp_path)["a"].num_rows == 2
    refused = run(stage(**settings, truncation="refuse"), table, tmp_path)["a"]

    assert isinstance(refused, TextTooLong)
    assert str(refused).startswith("Chunk a-1: ")
    close_dense()


def test_a_cached_vector_of_another_length_is_replaced(asked: list[str], tmp_path: Path) -> None:
    """It is a cache miss."""
    dense = stage(cache=CacheOptions(path=str(tmp_path / "cache")))
    cache = VectorCache(tmp_path / "cache" / CACHE_FILE, 2**20)
    cache.put(cache_space(dense.facts, "cut"), ["one"], np.ones((1, 3), dtype=np.float32))
    table, context = chunks_of(tmp_path, a=["one", "two"]), ItemContext()

    rows = run(dense, table, tmp_path, context)["a"]

    assert np.shape(rows["vector"].to_pylist()) == (2, 2)
    assert (context.counts["cache_hits"], context.counts["cache_misses"]) == (0, 2)
    run(dense, table, tmp_path)
    assert asked == ["one", "two"]
