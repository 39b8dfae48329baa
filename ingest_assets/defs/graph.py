"""The graph as data: each stage, what it reads, the step it belongs to and how the settings make it.

Plans, assets, checks, jobs and commands are made from it, so a new stage is one more entry here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import dagster as dg

from ingest_assets.config import Settings
from ingest_assets.defs.budget import chunks_stage
from ingest_assets.embedders.registry import resolve_dense
from ingest_assets.model.schemas import (
    ADMISSION,
    CHUNKS,
    DOCTAGS,
    DOCUMENTS,
    LEXICAL,
    SPARSE,
    TableSpec,
    dense_spec,
)
from ingest_assets.model.steps import STEPS, Step
from ingest_assets.parsing.engines import choose_engine
from ingest_assets.stages.admission import AdmissionStage
from ingest_assets.stages.dense import DenseStage
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.documents import DocumentsStage
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.stages.sparse import SparseStage
from ingest_assets.stages.stage import Stage

_PACKAGED_DIM = 384


@dataclass(frozen=True, slots=True)
class Node:
    """A stage's place in the graph.

    `reads` are the stages whose tables it reads; one that reads none works on the ledger's files. `table` is
    known before the settings are, so vectors have the packaged model's dimension there. One that `weighs`
    documents against those of other batches is given how they stand, too, by the ledger's claims. What the
    settings do not want is no part of a home's graph.
    """

    step: Step
    reads: tuple[str, ...]
    table: TableSpec
    recipe: Callable[[Settings], Stage]
    weighs: bool = False
    is_wanted: Callable[[Settings], bool] = lambda settings: True

    @property
    def asset_key(self) -> dg.AssetKey:
        """What Dagster calls the table."""
        return dg.AssetKey(self.table.asset.split("/"))

    @property
    def has_sets(self) -> bool:
        """True for an embedding family: another model's tables are made beside those that serve."""
        return self.table.asset.startswith("embeddings/")


# In the order they run: each stands below what it reads.
GRAPH: dict[str, Node] = {
    "documents": Node("documents", (), DOCUMENTS, lambda settings: DocumentsStage()),
    "doctags": Node(
        "doctags",
        ("documents",),
        DOCTAGS,
        lambda settings: DoctagsStage(settings.parsing, choose_engine(settings.parsing)),
    ),
    "admission": Node(
        "admission",
        ("doctags", "documents"),
        ADMISSION,
        lambda settings: AdmissionStage(settings.admission),
        weighs=True,
    ),
    "chunks": Node(
        "chunks",
        ("doctags", "admission"),
        CHUNKS,
        chunks_stage,
    ),
    "dense": Node(
        "embeddings",
        ("chunks",),
        dense_spec(_PACKAGED_DIM),
        lambda settings: DenseStage(resolve_dense(settings.embeddings.dense), settings.embeddings.cache),
    ),
    "sparse": Node(
        "embeddings",
        ("chunks",),
        SPARSE,
        lambda settings: SparseStage(settings.embeddings.sparse),
        is_wanted=lambda settings: settings.embeddings.sparse.model != "",
    ),
    "lexical": Node(
        "embeddings",
        ("chunks", "admission"),
        LEXICAL,
        lambda settings: LexicalStage(settings.embeddings.lexical),
    ),
}


def graph_of(settings: Settings) -> dict[str, Node]:
    """The stages that these settings ask for, in the order they run."""
    return {stage: node for stage, node in GRAPH.items() if node.is_wanted(settings)}


def stages_of(*steps: Step) -> list[str]:
    """The stages of some steps, in the order they run."""
    return [stage for stage, node in GRAPH.items() if node.step in steps]


def stages_between(first: Step, last: Step) -> list[str]:
    """The stages from one step to another, both included."""
    return stages_of(*STEPS[STEPS.index(first) : STEPS.index(last) + 1])
