"""The worker of every stage."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from ingest_assets.core.errors import ContractBroken
from ingest_assets.core.items import ItemContext, Record, WorkItem
from ingest_assets.core.layout import Layout
from ingest_assets.core.schemas import LEXICAL, TableSpec
from ingest_assets.stages.base import StageMismatch, StageWorker, row_settings
from ingest_assets.storage.table import Parts
from ingest_tests.stages.conftest import BATCH, CONTEXT


@dataclass(frozen=True)
class CountedStage:
    """Makes `made` rows."""

    name: ClassVar[str] = "counted"
    version: ClassVar[str] = "1"
    spec: ClassVar[TableSpec] = LEXICAL
    preload: ClassVar[tuple[str, ...]] = ()
    made: int = 1

    def config(self) -> Mapping[str, Any]:
        return {"made": self.made}

    def libraries(self) -> Mapping[str, str]:
        return {}

    def footer(self) -> Mapping[str, str]:
        return {}

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        row = {"chunk_id": "c", "doc_id": item.item_id, "terms": ["a"], "counts": [1], "length": 1}
        return pa.Table.from_pylist([row | {"ordinal": n} for n in range(self.made)], schema=LEXICAL.schema)


def parts(home: Path) -> Parts:
    """Return the parts that the worker has staged."""
    return Parts(Layout(home), LEXICAL, BATCH)


def test_rows_are_staged_under_the_items_fingerprint(tmp_path: Path) -> None:
    """The result has the number of rows and their path, but no rows."""
    worker = StageWorker(CountedStage(3), str(tmp_path), BATCH)

    result = worker(WorkItem("docs:a", "f"), ItemContext())

    assert (result.rows, result.counts) == (3, {"rows": 3})
    assert result.outputs == (str(parts(tmp_path).path("docs:a")),)
    assert parts(tmp_path).records() == {"docs:a": Record("f", 3)}
    assert parts(tmp_path).read("docs:a")["ordinal"].to_pylist() == [0, 1, 2]


def test_an_item_without_rows_fails_and_stages_nothing(tmp_path: Path) -> None:
    """Done means at least one row: an item with an empty part would be retried in every run."""
    worker = StageWorker(CountedStage(0), str(tmp_path), BATCH)

    with pytest.raises(ContractBroken, match="counted returned no rows"):
        worker(WorkItem("docs:a", "f"), CONTEXT)

    assert parts(tmp_path).records() == {}


def test_a_worker_with_other_settings_than_the_plan_makes_no_rows(tmp_path: Path) -> None:
    """Its machine has other files or packages: the error names the differences, and nothing is staged."""
    planned = row_settings(CountedStage(2)) | {"version of torch": "2.1"}

    with pytest.raises(StageMismatch, match=r" differs from the plan: made, version of torch\. ") as caught:
        StageWorker(CountedStage(3), str(tmp_path), BATCH, planned)(WorkItem("docs:a", "f"), CONTEXT)

    assert caught.value.retryable
    assert parts(tmp_path).records() == {}
    assert StageWorker(CountedStage(3), str(tmp_path), BATCH, row_settings(CountedStage(3)))(
        WorkItem("docs:a", "f"), CONTEXT
    ).rows


def test_a_worker_survives_pickling(tmp_path: Path) -> None:
    """It is sent to every worker process."""
    worker = pickle.loads(pickle.dumps(StageWorker(CountedStage(2), str(tmp_path), BATCH)))

    assert worker(WorkItem("docs:a", "f"), CONTEXT).rows == 2
