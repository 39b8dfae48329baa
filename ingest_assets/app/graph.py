"""The graph as data: each stage, what it reads, its step, and how to create it from the settings.

Plans, assets, checks, jobs and commands derive from it: a new stage is its module and an entry here.
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

# Chunks are measured in tokens of the dense embedder's tokenizer, up to its limit.


def chunks_stage(settings: Settings) -> ChunksStage:
    """Return the chunks stage; raise `ConfigError` for chunks longer than the embedder's limit."""
    dense = resolve_dense(settings.embeddings.dense)
    facts = describe_dense(dense)
    is_packaged = dense.provider in BUILT_IN and dense.model in PACKAGED  # other providers may ignore `model`
    embedder_tokenizer = dense.model if is_packaged else facts.tokenizer
    # The tokenizer set for chunks, else that of the dense embedder, else the packaged one.
    tokenizer = settings.chunks.tokenizer or embedder_tokenizer or PACKAGED_MODEL
    stage = ChunksStage(settings.chunks, tokenizer, facts.max_tokens, facts.passage_prefix)
    _ = stage.cut
    return stage


Options = TypeVar("Options", bound=BaseModel)


def added_options(settings: Settings, stage: str, kind: type[Options]) -> Options:
    """Validate the options of an added stage, `[stages.<name>.options]`; errors name the setting."""
    section = getattr(settings.stages, stage, StageOptions())
    try:
        return kind.model_validate(section.options)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["stages", stage, "options", *map(str, first["loc"])])
        raise ConfigError(f"{where}: {first['msg']}; got {first['input']!r}.") from None


@dataclass(frozen=True, slots=True)
class Node:
    """A stage's place in the graph.

    `reads` are the stages whose tables it reads; a stage without any works on the ledger's documents. `make`
    creates the stage from the settings; a stage whose `is_enabled` is false is not part of the home's graph.
    `pool` (a shared limit) and `kinds` (icons in the web UI) are for Dagster. `options` are the defaults of
    `[stages.<name>]`; those of the built-in stages are in `settings/tree.py`.
    """

    step: Step
    reads: tuple[str, ...]
    stage: type[Stage]
    make: Callable[[Settings], Stage]
    pool: str = "chunks"
    kinds: tuple[str, ...] = ("parquet",)
    options: StageOptions = StageOptions(policy="cpu", memory_per_worker_mib=1024, per_item_timeout_s=300)
    is_enabled: Callable[[Settings], bool] = lambda settings: True

    @property
    def table(self) -> TableSpec:
        """The table before settings are read: vectors have the packaged model's dimension."""
        return self.stage.table

    @property
    def has_sets(self) -> bool:
        """True for an embedding family: a new model set is built next to the serving one."""
        return self.table.asset.startswith("embeddings/")


# In execution order: each stage comes after those it reads.
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
        is_enabled=lambda settings: settings.embeddings.sparse.model != "",
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


# The first stage: it works on the ledger's documents, for which the queue acquires artifacts.
FIRST_STAGE = next(iter(GRAPH))


def graph_of(settings: Settings) -> dict[str, Node]:
    """Return the stages that these settings enable, in execution order."""
    return {stage: node for stage, node in GRAPH.items() if node.is_enabled(settings)}


def stages_between(first: Step, last: Step) -> list[str]:
    """Return the stages from one step to another, both included."""
    steps = STEPS[STEPS.index(first) : STEPS.index(last) + 1]
    return [stage for stage, node in GRAPH.items() if node.step in steps]
