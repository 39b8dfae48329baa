"""The plan: pure, in order, and stale exactly for what changed."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingest_assets.core.errors import StageError
from ingest_assets.core.items import Record
from ingest_assets.core.layout import Layout
from ingest_assets.parsing.errors import CorruptDocument
from ingest_assets.settings.chunks import ChunkOptions
from ingest_assets.settings.embeddings import DenseOptions, LexicalOptions
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.stages.base import Candidate, Stage, config_hash, work_items
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_assets.stages.dense import DenseStage
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.documents import DocumentsStage
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.storage.parquet import Failure, Footer
from ingest_tests.stages.conftest import BATCH, item_of

HOME = Path("/home")
STAGES: list[Stage] = [DocumentsStage(), DoctagsStage(), ChunksStage(), DenseStage(), LexicalStage()]


@dataclass(frozen=True)
class Graph:
    """The stages as configured."""

    parsing: ParsingOptions = ParsingOptions()
    chunks: ChunkOptions = ChunkOptions()
    dense: DenseOptions = DenseOptions()
    lexical: LexicalOptions = LexicalOptions()

    def fingerprints(self, content: str = "hash") -> dict[str, str]:
        """Return one document's fingerprint at each stage, each chained to the stage before."""

        def fingerprint(stage: Stage, upstream: str) -> str:
            return item_of(stage, Candidate("docs:a", upstream), HOME).fingerprint

        doctags = fingerprint(DoctagsStage(self.parsing), content)
        chunks = fingerprint(ChunksStage(self.chunks), doctags)
        dense, lexical = (
            fingerprint(DenseStage(self.dense), chunks),
            fingerprint(LexicalStage(self.lexical), chunks),
        )
        return {"doctags": doctags, "chunks": chunks, "dense": dense, "lexical": lexical}


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        ({"chunks": ChunkOptions(max_tokens=128)}, {"chunks", "dense", "lexical"}),
        ({"chunks": ChunkOptions(merge_peers=False)}, {"chunks", "dense", "lexical"}),
        ({"parsing": ParsingOptions(ocr=False)}, {"doctags", "chunks", "dense", "lexical"}),
        ({"dense": DenseOptions(pooling="cls")}, {"dense"}),
        ({"lexical": LexicalOptions(min_term_chars=2)}, {"lexical"}),
        ({}, set()),
    ],
)
def test_a_setting_makes_stale_what_it_decides_and_what_is_below(
    changed: dict[str, Any], stale: set[str]
) -> None:
    """A change of chunk options leaves doctags alone."""
    before, after = Graph().fingerprints(), Graph(**changed).fingerprints()

    assert {stage for stage in before if before[stage] != after[stage]} == stale


def test_other_content_makes_everything_stale() -> None:
    """Fingerprints chain from the bytes down to the vectors."""
    before, after = Graph().fingerprints("one"), Graph().fingerprints("two")

    assert not {*before.values()} & {*after.values()}


def test_a_plan_keeps_the_order_given_and_names_its_parts() -> None:
    """The table's rows have the same order."""
    candidates = [Candidate(name, "up", {"row": n}, ("in",), n) for n, name in enumerate(["b", "c", "a"])]

    items = list(work_items(LexicalStage(), candidates, Layout(HOME), BATCH, None, {}))

    assert [item.item_id for item in items] == ["b", "c", "a"]
    assert [item.meta["row"] for item in items] == [0, 1, 2]
    assert items[0].output_paths == (str(Layout(HOME).part("embeddings/lexical", BATCH, "b")),)
    assert {item.cfg_hash for item in items} == {config_hash(LexicalStage())}
    assert not any(item.satisfies() for item in items)


@pytest.mark.parametrize(
    ("stored", "staged", "done"),
    [
        (None, None, False),
        ("now", None, True),
        (None, "now", True),
        ("now", "old", True),
        ("old", "old", False),
    ],
)
def test_an_item_is_done_when_its_table_or_its_part_is_current(
    stored: str | None, staged: str | None, done: bool
) -> None:
    """After a crash, parts are used; a stale part does not hide a current table."""
    candidate = Candidate("a", "up")
    now = item_of(LexicalStage(), candidate, HOME).fingerprint
    marks = {"now": now, "old": "old"}
    table = Footer("1", "c", {"a": Record(marks[stored], 1)}) if stored else None
    parts = {"a": Record(marks[staged], 1)} if staged else {}

    (item,) = work_items(LexicalStage(), [candidate], Layout(HOME), BATCH, table, parts)

    assert item.satisfies() is done


@pytest.mark.parametrize("same", [True, False])
def test_a_failure_is_known_only_for_the_same_fingerprint(same: bool) -> None:
    """A changed document is retried."""
    candidate = Candidate("a", "up")
    now = item_of(LexicalStage(), candidate, HOME).fingerprint
    error = StageError.of(CorruptDocument("broken"), stage="lexical", item_id="a")
    table = Footer("1", "c", {}, {"a": Failure(now if same else "old", error)})

    (item,) = work_items(LexicalStage(), [candidate], Layout(HOME), BATCH, table, {})

    assert item.is_known_to_fail() is same


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_stage_can_be_pickled(stage: Stage) -> None:
    """It is sent to worker processes and has the same configuration there."""
    again = pickle.loads(pickle.dumps(stage))

    assert again == stage
    assert config_hash(again) == config_hash(stage)


def test_no_two_stages_share_a_name_or_a_table() -> None:
    """Their parts and manifests would mix."""
    assert len({stage.name for stage in STAGES}) == len({stage.spec.asset for stage in STAGES}) == 5


@pytest.mark.parametrize("stage", STAGES[1:4], ids=lambda stage: stage.name)
def test_the_libraries_that_decide_a_row_are_installed_ones(stage: Stage) -> None:
    """A misspelled package name would always read `absent` and never make anything stale."""
    assert stage.libraries()
    assert "absent" not in stage.libraries().values()
