"""Pooled tools are used by one item at a time, from any number of threads."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.core.identity import hash_file
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.samples import samples_folder
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.object_pool import ObjectPool
from ingest_assets.storage.table import Table
from ingest_tests.stages.conftest import CONTEXT, admitting, bridge, item_of


class Tool:
    """An object that notices when two threads use it at once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_used = threading.Lock()


def test_a_tool_is_opened_once_and_used_again() -> None:
    """For equal arguments; other arguments open another tool."""
    tools = ObjectPool(Tool)

    with tools.lend("a") as first:
        pass
    with tools.lend("a") as second, tools.lend("b") as other:
        pass

    assert first is second
    assert other.name == "b"


def test_tools_are_never_shared_and_at_most_one_per_thread_is_opened() -> None:
    """Eight threads, each many times."""
    opened: list[Tool] = []
    tools = ObjectPool(lambda name: opened.append(Tool(name)) or opened[-1])

    def use(_: int) -> bool:
        with tools.lend("a") as tool:
            is_alone = tool.is_used.acquire(blocking=False)
            tool.is_used.release()
            return is_alone

    with ThreadPoolExecutor(8) as pool:
        alone = list(pool.map(use, range(2000)))

    assert all(alone)
    assert len(opened) <= 8


def test_a_failed_item_returns_its_tool() -> None:
    """A bad document must not make the pool open another converter."""
    tools = ObjectPool(Tool)
    with pytest.raises(ItemError), tools.lend("a") as first:
        raise ItemError("bad document")

    with tools.lend("a") as second:
        assert second is first


def test_a_stuck_item_keeps_its_tool_and_the_next_gets_another() -> None:
    """A thread cannot be stopped, so its tool is lost."""
    tools = ObjectPool(Tool)

    with tools.lend("a") as stuck, tools.lend("a") as next_one:
        assert stuck is not next_one


def test_threads_chunk_as_one_does(doctags_table: Callable[..., Table], tmp_path: Path) -> None:
    """Tokenizers change while they are used, so threads must not share one."""
    stage = ChunksStage()
    table = doctags_table({f"docs:{n}": bridge(paragraphs=n) for n in range(1, 25)})
    items = [item_of(stage, candidate, tmp_path) for candidate in stage.candidates(table, admitting(table))]
    alone = [stage.rows(item, CONTEXT) for item in items]

    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda item: stage.rows(item, ItemContext(workers=6)), items))

    assert all(one.equals(other) for one, other in zip(alone, together, strict=True))


@pytest.mark.slow
def test_threads_read_pdfs_as_one_does() -> None:
    """PDFium, the layout model and the OCR engine are not thread-safe."""
    stage = DoctagsStage()
    items = [_pdf(name) for name in ("capping-and-moisture-trial.pdf", "library-roof-letter-scan.pdf")]
    alone = [stage.rows(item, CONTEXT) for item in items]

    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda item: stage.rows(item, ItemContext(workers=2)), items))

    assert all(one.equals(other) for one, other in zip(alone, together, strict=True))


def _pdf(name: str) -> WorkItem:
    path = samples_folder() / name
    meta = {"path": str(path), "content_hash": hash_file(path)[0], "mime": "application/pdf", "name": name}
    return WorkItem(name, "print", meta=meta)
