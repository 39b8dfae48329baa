"""A stopped stage keeps the vectors that an endpoint has returned, so they are not paid for again."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from ingest_assets.app.stage_run import close_abandoned
from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.schemas import CHUNKS
from ingest_assets.embedders.providers import close_dense, open_dense
from ingest_assets.settings.embeddings import CacheOptions
from ingest_assets.stages.dense import DenseStage
from ingest_tests.embedders.vector_server import options_for, right_answer, serving
from ingest_tests.parsing.vision_server import Reply
from ingest_tests.rows import blank_rows
from ingest_tests.stages.conftest import item_of, write_table

LATE = "late"
TEXTS = ["a text that is longer", "and one more of them", LATE]  # long texts are sent first


def _document(stage: DenseStage, home: Path) -> WorkItem:
    rows = [
        blank_rows(CHUNKS, doc_id="a", ordinal=n, chunk_id=f"a-{n}", contextualized=text)
        for n, text in enumerate(TEXTS)
    ]
    (candidate,) = stage.candidates(
        write_table(home / "chunks.parquet", CHUNKS, {"a": pa.concat_tables(rows)})
    )
    return item_of(stage, candidate, home)


def _wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_vectors_that_a_stopped_document_has_are_kept(tmp_path: Path):
    """Its thread cannot be killed, and its pending request is not awaited."""
    is_first: list[bool] = [True]

    def script(_number: int, texts: list[str]) -> Reply | None:
        return Reply(right_answer(texts).body, seconds=60) if LATE in texts and is_first[0] else None

    with serving(script) as server:
        options = options_for(server.url, batch_size=1, max_in_flight=1)
        stage, backend = DenseStage(options, CacheOptions(path=str(tmp_path / "cache"))), ThreadBackend(1)
        item = _document(stage, tmp_path)
        backend.submit(partial(stage.rows, item, ItemContext()))
        _wait_until(lambda: [LATE] in server.inputs)

        backend.close(0)
        close_abandoned(stage, backend)

        assert backend.abandoned == 0
        is_first[0], requests = False, len(server.inputs)
        assert stage.rows(item, ItemContext()).num_rows == 3
        assert server.inputs[requests:] == [[LATE]]
    close_dense()


def test_a_finished_stage_leaves_the_embedder_open(tmp_path: Path):
    """The next batch reuses it."""
    with serving() as server:
        stage = DenseStage(options_for(server.url), CacheOptions(enabled=False))
        backend, before = ThreadBackend(1), open_dense(stage.options)
        backend.get_result(backend.submit(partial(stage.rows, _document(stage, tmp_path), ItemContext())))

        backend.close(0)
        close_abandoned(stage, backend)

        assert open_dense(stage.options) is before
    close_dense()
