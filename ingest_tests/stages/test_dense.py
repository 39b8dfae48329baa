"""The dense stage: whatever a provider does, one bad chunk costs its own document, and is named."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingest_assets.embedders.registry import close_dense, dense_kind
from ingest_assets.model.embedding import CacheOptions, DenseOptions
from ingest_assets.model.errors import ContractBroken, ItemError
from ingest_assets.model.items import ItemContext
from ingest_assets.model.schemas import CHUNKS
from ingest_assets.stages.dense import DenseStage
from ingest_assets.storage.tables import Table
from ingest_tests.rows import blank_rows
from ingest_tests.stages.conftest import item_of, write_table

MODULE = """
import numpy as np
from ingest_assets.embedders.counting import count
from ingest_assets.embedders.errors import TextTooLong
from ingest_assets.model.embedding import DenseFacts

ASKED = []

class Odd:
    model_id, dim = "odd@1", 2
    def embed(self, texts, kind="passage"):
        ASKED.extend(texts)
        for index, text in enumerate(texts):
            if "long" in text:
                raise TextTooLong("too long", detail={"index": index})
        count("tokens", len(texts))
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
        return Odd()
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A provider of another package that does what its texts say; and what it was asked for."""
    folder = tmp_path / "site"
    info = folder / "odd-1.dist-info"
    info.mkdir(parents=True)
    (folder / "odd_provider.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[ingest_assets.dense_providers]\nodd = odd_provider:Kind\n")
    monkeypatch.syspath_prepend(str(folder))
    dense_kind.cache_clear()
    dense_kind("odd")
    yield sys.modules["odd_provider"].ASKED
    close_dense()
    dense_kind.cache_clear()
    del sys.modules["odd_provider"]


def stage(**changes: Any) -> DenseStage:
    """With the provider of the other package."""
    cache = changes.pop("cache", CacheOptions())
    return DenseStage(DenseOptions(provider="odd", **changes), cache)


def chunks_of(tmp_path: Path, **documents: list[str]) -> Table:
    """A chunks table; a chunk's id is its document and place."""
    tables = {
        doc: pa.concat_tables(
            blank_rows(CHUNKS, doc_id=doc, ordinal=n, chunk_id=f"{doc}-{n}", contextualized=text)
            for n, text in enumerate(texts)
        )
        for doc, texts in documents.items()
    }
    return write_table(tmp_path / "chunks.parquet", CHUNKS, tables)


def run(recipe: DenseStage, table: Table, home: Path, context: ItemContext | None = None) -> dict[str, Any]:
    """Rows of each document, or its error."""
    done: dict[str, Any] = {}
    for candidate in recipe.candidates(table):
        try:
            done[candidate.item_id] = recipe.rows(item_of(recipe, candidate, home), context or ItemContext())
        except ItemError as error:
            done[candidate.item_id] = error
    return done


@pytest.mark.parametrize(
    ("fault", "says", "lost"),
    [
        ("nan", "The vector of chunk bad-1 is not finite", ["nan"]),
        ("zero", "The vector of chunk bad-1 is all zeros", ["zero"]),
        ("wide", "The vector of chunk bad-0 has the shape", ["two", "wide"]),
        ("short", "gave 1 vectors for 2 chunks, from chunk bad-1 on", ["two", "short"]),
        ("nothing", "gave 0 vectors for 2 chunks, from chunk bad-0 on", ["two", "nothing"]),
    ],
)
def test_a_bad_vector_costs_its_own_document(
    asked: list[str], tmp_path: Path, fault: str, says: str, lost: list[str]
) -> None:
    """As a contract error that names the chunk; the good ones beside it are remembered if they are known."""
    cached = CacheOptions(path=str(tmp_path / "cache.sqlite"))
    table = chunks_of(tmp_path, good=["one"], bad=["two", fault], fine=["three"])

    done = run(stage(cache=cached), table, tmp_path)

    assert isinstance(done["bad"], ContractBroken)
    assert says in str(done["bad"])
    assert (done["good"].num_rows, done["fine"].num_rows) == (1, 1)
    asked.clear()
    assert isinstance(run(stage(cache=cached), table, tmp_path)["bad"], ContractBroken)
    assert asked == lost


def test_a_refused_text_is_named_by_its_chunk(asked: list[str], tmp_path: Path) -> None:
    """The provider knows places, the user knows chunks."""
    error = run(stage(), chunks_of(tmp_path, a=["one", "long"]), tmp_path)["a"]

    assert (error.code, str(error)) == ("E_TEXT_TOO_LONG", "Chunk a-1: too long")
    assert error.detail == {"chunk_id": "a-1"}


def test_what_was_embedded_before_costs_nothing(asked: list[str], tmp_path: Path) -> None:
    """Over documents and within one; a forced run makes all anew, and other settings are another model."""
    cached = CacheOptions(path=str(tmp_path / "cache.sqlite"))
    table = chunks_of(tmp_path, a=["one", "two", "one"], b=["two", "three"])
    context = ItemContext()

    first = run(stage(cache=cached), table, tmp_path, context)
    assert asked == ["one", "two", "three"]
    assert context.counts == {"cache_hits": 2, "cache_misses": 3, "tokens": 3}
    again = run(stage(cache=cached), table, tmp_path)
    assert len(asked) == 3
    assert {doc: rows.equals(first[doc]) for doc, rows in again.items()} == {"a": True, "b": True}
    run(stage(cache=cached), table, tmp_path, ItemContext(anew=True))
    assert len(asked) == 7
    run(stage(cache=cached, passage_prefix="p"), table, tmp_path)
    assert len(asked) == 10


@pytest.mark.parametrize(("normalize", "first"), [(True, [0.6, 0.8]), (False, [3.0, 4.0])])
def test_vectors_are_scaled_if_the_provider_says_so(
    asked: list[str], tmp_path: Path, normalize: bool, first: list[float]
) -> None:
    """The length they had is kept beside them."""
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
    """Whether long texts are refused decides whether there is a row."""
    plain = stage()

    assert plain.config() == {"model": "odd", "prefix": None, "truncation": "cut"}
    assert plain.libraries() == {"odd": "1"}
    assert stage(batch_tokens=9, device="cpu").config() == plain.config()
