"""The dense stage with a remote endpoint and the vector cache."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingest_assets.core.errors import ContractBroken, ItemError
from ingest_assets.core.items import ItemContext
from ingest_assets.core.schemas import CHUNKS
from ingest_assets.embedders.errors import (
    EndpointBusy,
    EndpointDenied,
    TextRefused,
    TextUnanswered,
    VectorUnusable,
)
from ingest_assets.embedders.providers import close_dense
from ingest_assets.settings.embeddings import CacheOptions
from ingest_assets.stages.dense import DenseStage
from ingest_tests.embedders.vector_server import (
    VectorScript,
    VectorServer,
    answer_of,
    items_of,
    options_for,
    serving,
    vector_of,
)
from ingest_tests.parsing.vision_server import Reply, refused
from ingest_tests.stages.conftest import item_of, write_table


def _rows(stage: DenseStage, home: Path, texts: Sequence[str], context: ItemContext) -> pa.Table:
    """Return the stage's rows for a document with these chunks."""
    rows = [
        {
            name: "" if pa.types.is_string(field.type) else None
            for name, field in zip(CHUNKS.schema.names, CHUNKS.schema, strict=True)
        }
        | {"chunk_id": f"chunk {n}", "doc_id": "docs:a", "ordinal": n, "text": text, "contextualized": text}
        | {"headings": [], "captions": [], "pages": [], "item_refs": [], "tokens": 1, "start_offset": 0}
        for n, text in enumerate(texts)
    ]
    chunks = write_table(
        home / "chunks.parquet", CHUNKS, {"docs:a": pa.Table.from_pylist(rows, CHUNKS.schema)}
    )
    (candidate,) = stage.candidates(chunks)
    return stage.rows(item_of(stage, candidate, home), context)


def _stage(server: VectorServer, home: Path, **remote: Any) -> DenseStage:
    return DenseStage(
        options_for(server.url, retries=0, **remote),
        CacheOptions(path=str(home / "cache")),
    )


@pytest.fixture(autouse=True)
def _closed_again() -> Any:
    yield
    close_dense()


def test_text_that_was_embedded_before_costs_no_request(tmp_path: Path):
    """A changed document requests only its new texts; a forced run requests all."""
    with serving() as server:
        stage, first, second, forced = (
            _stage(server, tmp_path),
            ItemContext(),
            ItemContext(),
            ItemContext(force=True),
        )

        before = _rows(stage, tmp_path, ["a", "b", "a"], first)
        after = _rows(stage, tmp_path, ["b", "new", "a"], second)
        _rows(stage, tmp_path, ["a", "b"], forced)

    assert [sorted(texts) for texts in server.inputs] == [["a", "b"], ["new"], ["a", "b"]]
    assert before["vector"][1] == after["vector"][0]
    assert before["vector"][0] == before["vector"][2] == after["vector"][2]
    assert (first.counts["cache_hits"], first.counts["cache_misses"]) == (1, 2)
    assert (second.counts["cache_hits"], second.counts["cache_misses"], second.counts["requests"]) == (
        2,
        1,
        1,
    )


def test_rows_have_the_endpoints_vectors_at_unit_length(tmp_path: Path):
    """With their original norm."""
    with serving() as server:
        rows = _rows(_stage(server, tmp_path), tmp_path, ["a", "b"], ItemContext())

    for text, vector, norm in zip("ab", rows["vector"].to_pylist(), rows["norm"].to_pylist(), strict=True):
        np.testing.assert_allclose(np.array(vector) * norm, vector_of(text), rtol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(vector), 1, atol=1e-6)


def _spoiling(text: str, embedding: Any) -> VectorScript:
    def script(number: int, texts: list[str]) -> Reply:
        items = items_of(texts)
        for item, requested in zip(items, texts, strict=True):
            item["embedding"] = embedding if requested == text else item["embedding"]
        return answer_of(items)

    return script


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (lambda n, texts: refused(400) if "bad" in texts else None, TextRefused),
        (lambda n, texts: refused(403) if "bad" in texts else None, TextRefused),
        (lambda n, texts: refused(500) if "bad" in texts else None, TextUnanswered),
        (_spoiling("bad", [float("nan")] * 8), VectorUnusable),
        (_spoiling("bad", [1.0]), VectorUnusable),
        (_spoiling("bad", [0.0] * 8), ContractBroken),
    ],
    ids=["refused", "blocked", "failed at", "not finite", "too short", "zero"],
)
def test_a_chunk_without_a_vector_is_named(script: VectorScript, kind: type[ItemError], tmp_path: Path):
    """In the error's message and detail, for every kind of failure."""
    with serving(script) as server:
        stage = _stage(server, tmp_path, batch_size=1)
        with pytest.raises(kind, match="chunk 1") as caught:
            _rows(stage, tmp_path, ["good", "bad", "fine"], ItemContext())

    assert caught.value.detail["chunk_id"] == "chunk 1"


@pytest.mark.parametrize(("status", "kind"), [(500, EndpointBusy), (401, EndpointDenied)])
def test_no_chunk_is_named_if_the_endpoint_is_at_fault(status: int, kind: type[ItemError], tmp_path: Path):
    """A user would search a valid text for the cause."""
    with serving(lambda n, texts: None if texts == ["good"] else refused(status)) as server:
        stage = _stage(server, tmp_path, batch_size=1)
        with pytest.raises(kind, match=r"^The endpoint") as caught:
            _rows(stage, tmp_path, ["good", "bad", "fine"], ItemContext())

    assert not {"index", "chunk_id"} & set(caught.value.detail)


def test_vectors_of_a_document_that_fails_are_cached(tmp_path: Path):
    """They are paid for: after the endpoint is fixed, only the others are requested."""
    state = {"refuses": True}
    script: VectorScript = lambda n, asked: (  # noqa: E731
        refused(400) if state["refuses"] and "bad" in asked else None
    )
    texts, context = ["good one", "bad", "fine"], ItemContext()
    with serving(script) as server:
        stage = _stage(server, tmp_path, batch_size=1, max_in_flight=1)
        with pytest.raises(TextRefused):
            _rows(stage, tmp_path, texts, context)
        requests, state["refuses"] = len(server.asked), False

        _rows(stage, tmp_path, texts, ItemContext())

    assert server.inputs[0] == ["good one"]
    assert context.counts["requests"] == 1
    assert "good one" not in [text for asked in server.inputs[requests:] for text in asked]


def test_a_retry_of_a_long_document_requests_only_the_missing_vectors(tmp_path: Path):
    """The vectors of the first attempt are in the cache."""
    texts = [f"text {n}" for n in range(700)]
    state = {"is_dead": True}
    script: VectorScript = lambda n, asked: (  # noqa: E731
        refused(503, Retry_After="0") if state["is_dead"] and "text 650" in asked else None
    )
    with serving(script) as server:
        stage = _stage(server, tmp_path)
        with pytest.raises(EndpointBusy):
            _rows(stage, tmp_path, texts, ItemContext())
        before = len(server.asked)
        state["is_dead"] = False

        rows = _rows(stage, tmp_path, texts, ItemContext())

    assert rows.num_rows == 700
    assert sum(map(len, server.inputs[before:])) < 700 - 512
