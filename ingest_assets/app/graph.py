"""The graph as data: each stage, what it reads, the step it belongs to and how the settings make it.

Plans, assets, checks, jobs and commands are made from it, so a new stage is its module and an entry here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.items import STEPS, Step
from ingest_assets.core.schemas import TableSpec
from ingest_assets.embedders.model_files import PACKAGED
from ingest_assets.embedders.providers import BUILT_IN, describe_dense, resolve_dense
from ingest_assets.parsing.engines import choose_engine
from ingest_assets.settings.embeddings import PACKAGED_MODEL
from ingest_assets.settings.execution import StageOptions
from ingest_assets.settings.tree import Settings
from ingest_assets.stages.admission.stage import AdmissionStage
from ingest_assets.stages.base import Stage
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_assets.stages.dense import DenseStage
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.documents import DocumentsStage
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.stages.sparse import SparseStage

# Whose tokens chunks are counted in, and how many of them there may be: the chunker follows the embedder.


def chunks_stage(settings: Settings) -> ChunksStage:
    """The recipe of chunks; refuses a budget that the embedder would cut."""
    dense = resolve_dense(settings.embeddings.dense)
    facts = describe_dense(dense)
    is_packaged = dense.provider in BUILT_IN and dense.model in PACKAGED  # others may have no use for a model
    own = dense.model if is_packaged else facts.tokenizer
    # The one named for chunks, or the dense embedder's own, or where nobody knows it the packaged one.
    tokenizer = settings.chunks.tokenizer or own or PACKAGED_MODEL
    stage = ChunksStage(settings.chunks, tokenizer, facts.max_tokens, facts.passage_prefix)
    _ = stage.cut
    return stage


Options = TypeVar("Options", bound=BaseModel)


def own_options(settings: Settings, stage: str, kind: type[Options]) -> Options:
    """The options of a stage that was added: `[stages.<name>.options]`, refused with their path."""
    given = getattr(settings.stages, stage, StageOptions())
    try:
        return kind.model_validate(given.options)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(["stages", stage, "options", *map(str, fault["loc"])])
        raise ConfigError(f"{where}: {fault['msg']}; got {fault['input']!r}.") from None


@dataclass(frozen=True, slots=True)
class Node:
    """A stage's place in the graph.

    `reads` are the stages whose tables it reads; one that reads none works on the ledger's documents. `make`
    makes the stage from the settings; what they do not want is no part of a home's graph. `pool` and `kinds`
    are for Dagster: which steps share a limit, and the icons in the web UI. `options` say how items run
    unless `[stages.<name>]` does; the stages that ship have theirs in `settings/tree.py`.
    """

    step: Step
    reads: tuple[str, ...]
    stage: type[Stage]
    make: Callable[[Settings], Stage]
    pool: str = "chunks"
    kinds: tuple[str, ...] = ("parquet",)
    options: StageOptions = StageOptions(policy="cpu", memory_per_worker_mib=1024, per_item_timeout_s=300)
    is_wanted: Callable[[Settings], bool] = lambda settings: True

    @property
    def table(self) -> TableSpec:
        """As far as it is known before the settings are: vectors have the packaged model's dimension."""
        return self.stage.table

    @property
    def has_sets(self) -> bool:
        """True for an embedding family: another model's tables are made beside those that serve."""
        return self.table.asset.startswith("embeddings/")


# In the order they run: each stands below what it reads.
GRAPH: dict[str, Node] = {
    "documents": Node(
        "documents",
        (),
        DocumentsStage,
        lambda settings: DocumentsStage(),
        pool="fetch",
        kinds=("file", "parquet"),
    ),
    "doctags": Node(
        "doctags",
        ("documents",),
        DoctagsStage,
        lambda settings: DoctagsStage(settings.parsing, choose_engine(settings.parsing)),
        pool="doctags",
        kinds=("docling", "parquet"),
    ),
    "admission": Node(
        "admission",
        ("doctags", "documents"),
        AdmissionStage,
        lambda settings: AdmissionStage(settings.admission),
    ),
    "chunks": Node(
        "chunks", ("doctags", "admission"), ChunksStage, chunks_stage, kinds=("docling", "parquet")
    ),
    "dense": Node(
        "embeddings",
        ("chunks",),
        DenseStage,
        lambda settings: DenseStage(resolve_dense(settings.embeddings.dense), settings.embeddings.cache),
        pool="gpu",
        kinds=("torch", "parquet"),
    ),
    "sparse": Node(
        "embeddings",
        ("chunks",),
        SparseStage,
        lambda settings: SparseStage(settings.embeddings.sparse),
        pool="gpu",
        kinds=("torch", "parquet"),
        is_wanted=lambda settings: settings.embeddings.sparse.model != "",
    ),
    "lexical": Node(
        "embeddings",
        ("chunks", "admission"),
        LexicalStage,
        lambda settings: LexicalStage(settings.embeddings.lexical),
        pool="lexical",
        kinds=("python", "parquet"),
    ),
}


# The stage that works on the ledger's documents, and that the queue acquires for.
INTAKE = next(iter(GRAPH))


def graph_of(settings: Settings) -> dict[str, Node]:
    """The stages that these settings ask for, in the order they run."""
    return {stage: node for stage, node in GRAPH.items() if node.is_wanted(settings)}


def stages_between(first: Step, last: Step) -> list[str]:
    """The stages from one step to another, both included."""
    steps = STEPS[STEPS.index(first) : STEPS.index(last) + 1]
    return [stage for stage, node in GRAPH.items() if node.step in steps]
