"""A home folder, composed: its settings, ledger, stages and tables, and the plan of each stage."""

import functools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ingest_assets.app.graph import GRAPH, Node, graph_of
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import canonical_json, sha256_text
from ingest_assets.core.items import WorkItem
from ingest_assets.core.layout import Layout
from ingest_assets.core.schemas import TableSpec
from ingest_assets.embedders.model_files import PACKAGED
from ingest_assets.intake.batches import give_homes
from ingest_assets.intake.duplicates import Claims
from ingest_assets.intake.folders.scan import (
    ScanLimits,
    ScanReport,
    WatchedFolder,
    add_folder,
    preview,
    register,
    scan,
    watched_sources,
)
from ingest_assets.intake.ledger import Ledger, Source
from ingest_assets.intake.ledger_copy import look_at
from ingest_assets.intake.queue.artifacts import Artifact
from ingest_assets.intake.queue.queue import Filter, Queue
from ingest_assets.settings.execution import StageOptions
from ingest_assets.settings.read import home_folder, read_settings
from ingest_assets.settings.tree import Settings, StagesSettings
from ingest_assets.stages.base import Stage, config_hash, set_id, work_items
from ingest_assets.stages.documents import AcquiredFile, KnownFile, LostArtifact
from ingest_assets.storage.model_sets import Family, SetMark
from ingest_assets.storage.parquet import read_footer
from ingest_assets.storage.table import Parts, Table, existing_table

# Folders in the settings may be given relative to the home; workers elsewhere need to find them, too.


def with_folders_found(settings: Settings, layout: Layout) -> Settings:
    """The settings, with the models' folders as every worker finds them."""
    home, embeddings, dense = layout.home, settings.embeddings, settings.embeddings.dense
    # What an endpoint calls its model is never a folder.
    is_elsewhere = dense.provider == "openai" or (dense.provider == "auto" and dense.remote.url)
    of_dense = {
        "model": dense.model if is_elsewhere else _folder_or_name(dense.model, home),
        "exports_path": _folder(dense.exports_path, home),
    }
    of_sparse = {"model": _folder_or_name(embeddings.sparse.model, home)}
    of_cache = {"path": _folder(embeddings.cache.path or str(layout.cache), home)}
    of_embeddings = {
        "dense": dense.model_copy(update=of_dense),
        "sparse": embeddings.sparse.model_copy(update=of_sparse),
        "cache": embeddings.cache.model_copy(update=of_cache),
    }
    of_parsing = {"artifacts_path": _folder(settings.parsing.artifacts_path, home)}
    of_chunks = {"tokenizer": _folder_or_name(settings.chunks.tokenizer, home)}
    found = {
        "embeddings": embeddings.model_copy(update=of_embeddings),
        "parsing": settings.parsing.model_copy(update=of_parsing),
        "chunks": settings.chunks.model_copy(update=of_chunks),
    }
    return settings.model_copy(update=found)


def _folder(given: str, home: Path) -> str:
    return str(home / Path(given).expanduser()) if given else ""


def _folder_or_name(given: str, home: Path) -> str:
    """What is no folder there is a name; the current folder of whoever runs a command is never looked at."""
    folder = home / Path(given).expanduser()
    return str(folder) if given and given not in PACKAGED and folder.is_dir() else given


def is_due(artifact: Artifact, at: float) -> bool:
    """True when an artifact can be leased by then: it waits no longer, or its worker fell silent."""
    if artifact.state == "queued":
        return artifact.not_before <= at
    return artifact.lease_expires is not None and artifact.lease_expires <= at


@dataclass(frozen=True)
class Home:
    """Everything a stage needs to know about where it works."""

    layout: Layout
    settings: Settings
    makes_no_ledger: bool = False
    only_looks: bool = False

    @functools.cached_property
    def ledger(self) -> Ledger:
        """What is known of every document; for those who only look, a copy that they may change."""
        where = self.settings.intake.ledger.get_secret_value() or self.layout.ledger
        if self.only_looks:
            return look_at(where)
        if isinstance(where, str):
            return _on_a_server(where)
        is_absent = self.makes_no_ledger and not where.is_file()
        return Ledger(None if is_absent else where)

    @functools.cached_property
    def queue(self) -> Queue:
        """What is to be acquired."""
        return Queue(self.ledger.database, self.settings.queue)

    @functools.cached_property
    def stages(self) -> dict[str, Stage]:
        """The stages as the settings make them; raises `ConfigError` where settings contradict each other."""
        settings = self.settings_found
        return {stage: node.make(settings) for stage, node in self.graph.items()}

    def validate(self) -> None:
        """Refuse settings that contradict each other, before anything is started."""
        _ = self.stages

    def spec(self, stage: str) -> TableSpec:
        """A stage's table, in the folder of the set that it fills now.

        A cut-over, also by another process, moves the tables of a set: no place is remembered.
        """
        return replace(self.stages[stage].spec, asset=self.asset(stage))

    @functools.cached_property
    def graph(self) -> dict[str, Node]:
        """The stages that this home's settings ask for, in the order they run."""
        return graph_of(self.settings)

    @functools.cached_property
    def configuration_hash(self) -> str:
        """One hash of everything but documents that decides any row."""
        return sha256_text(canonical_json([config_hash(stage) for stage in self.stages.values()]))

    @functools.cached_property
    def set_marks(self) -> dict[str, SetMark]:
        """The set that the settings ask for, of each family."""
        return {
            stage: SetMark(set_id(recipe), recipe.footer().get("model_id", ""))
            for stage, recipe in self.stages.items()
            if GRAPH[stage].has_sets
        }

    def family(self, stage: str) -> Family:
        """All sets of a family that are there."""
        return Family(self.layout, self.serving(stage))

    @property
    def settings_found(self) -> Settings:
        """The settings, with the models' folders as every worker finds them."""
        return with_folders_found(self.settings, self.layout)

    def options(self, stage: str) -> StageOptions:
        """How a stage runs, by the settings."""
        options: StageOptions = getattr(self.settings.stages, stage, StageOptions())
        if stage in (self.settings.stages.model_extra or {}) or stage not in StagesSettings.model_fields:
            options = GRAPH[stage].options.model_copy(
                update={name: getattr(options, name) for name in options.model_fields_set}
            )
        execution = self.settings.execution.changed_by(options.execution)
        return options.model_copy(update={"execution": execution})

    def asset(self, stage: str) -> str:
        """The asset a stage fills: of an embedding family maybe a set beside the one that serves."""
        if not GRAPH[stage].has_sets:
            return self.serving(stage)
        return self.family(stage).place(self.set_marks[stage].set)

    def serving(self, stage: str) -> str:
        """The asset that readers see, and Dagster's name for what the stage makes."""
        return GRAPH[stage].table.asset

    def table(self, stage: str, batch: str) -> Table:
        """A batch's table as the stage fills it; raises when it has not been made."""
        return existing_table(self.layout, self.asset(stage), [batch])

    def tables(self, stage: str, *, in_the_making: bool = False) -> Table:
        """All batches' tables together, as readers see them, or as the stage fills them.

        Damaged ones are left out, for they will be made again.
        """
        asset = self.asset(stage) if in_the_making else self.serving(stage)
        folder = self.layout.asset_folder(asset)
        whole = [path for path in sorted(folder.glob("*.parquet")) if read_footer(path) is not None]
        return Table(asset, tuple(whole))

    def plan(self, stage: str, batch: str, read: Sequence[Table] = ()) -> list[WorkItem]:
        """A stage's items for one batch, in row order, each with what is stored for it.

        A stage that reads no tables works on the ledger's documents. `read` are the tables it reads, for
        those who have them open already.
        """
        spec, recipe, reads = self.spec(stage), self.stages[stage], GRAPH[stage].reads
        stored = read_footer(self.layout.table(spec.asset, batch))
        staged = Parts(self.layout, spec, batch).records()
        if reads:
            tables = list(read) or [self.table(above, batch) for above in reads]
            standing = [Claims(self.ledger).of(batch)] if recipe.compares_documents else []
            found = recipe.candidates(*tables, *standing)
        else:
            found = recipe.candidates(self._known_documents(batch))
        return list(work_items(recipe, found, self.layout, batch, stored, staged, spec))

    def _known_documents(self, batch: str) -> list[KnownFile | AcquiredFile | LostArtifact]:
        """The files and artifacts of a batch that are there, and those given up, in intake order."""
        folders = {source.name: source.path for source in self.ledger.sources()}
        queued = {artifact.artifact_id: artifact for artifact in self.queue.find(Filter(batch=batch))}
        found: dict[int, KnownFile | AcquiredFile | LostArtifact] = {
            artifact.doc_seq or 0: LostArtifact(artifact.artifact_id, last.category, last.code, last.message)
            for artifact in queued.values()
            if artifact.state == "error" and (last := artifact.last_error) is not None
        }
        for document in self.ledger.documents(batch=batch):
            if document.is_deleted():
                continue
            names = ("doc_id", "batch", "seq", "source", "content_hash", "size_bytes")
            known: dict[str, Any] = {name: getattr(document, name) for name in names}
            if document.resolver is None:
                path = folders[document.source] / document.path
                found[document.seq] = KnownFile(path=str(path), **known)
                continue
            artifact = queued[document.doc_id]
            found[document.seq] = AcquiredFile(
                path=str(self.layout.blob(document.content_hash)),
                uri=artifact.url or Path(artifact.path or "").as_uri(),
                mime=artifact.mime or "",
                resolver=artifact.resolver,
                host=artifact.host or None,
                etag=artifact.etag,
                last_modified=artifact.last_modified,
                meta=canonical_json(artifact.meta) if artifact.meta else None,
                **known,
            )
        return [found[seq] for seq in sorted(found)]

    def awaited(self, batch: str, due_at: float | None = None) -> list[Artifact]:
        """Artifacts of a batch that are still to be acquired; with a time, only those to be had by then."""
        found = [a for a in self.queue.find(Filter(batch=batch)) if a.state in ("queued", "in_progress")]
        return [artifact for artifact in found if due_at is None or is_due(artifact, due_at)]

    def give_homes(self) -> set[str]:
        """Batches for what was queued since the last time."""
        return give_homes(self.ledger, self.settings.batches, time.time())

    def sources(self) -> list[Source]:
        """Every watched folder: those added by commands, and those the settings name."""
        return watched_sources(self.ledger, self._folders())

    def watch(self, folder: Path) -> Source:
        """Add a folder to this home, unless it is watched already."""
        register(self.ledger, self._folders())
        return add_folder(self.ledger, folder)

    def watch_as(self, name: str, folder: Path) -> None:
        """Watch a folder under a fixed name, wherever it is now."""
        self.ledger.put_source(Source(name, folder), time.time())

    def scan(self, budget_seconds: float = float("inf"), settle_seconds: float = 0.0) -> ScanReport:
        """Bring the ledger up to date with the watched folders, and give what is queued its batches."""
        self.give_homes()
        return scan(self.ledger, self._folders(), *self._limits(budget_seconds, settle_seconds))

    def preview_scan(self, budget_seconds: float = float("inf")) -> ScanReport:
        """What a scan would find, with nothing written, and files hashed for so long."""
        return preview(self.ledger, self._folders(), *self._limits(budget_seconds))

    def _limits(
        self, budget_seconds: float, settle_seconds: float = 0.0
    ) -> tuple[ScanLimits, frozenset[Path]]:
        """How far a scan goes, and the home's own folders, which it leaves out."""
        accepts_empty = self.settings.intake.accept_empty_folders
        limits = ScanLimits(self.settings.batches, budget_seconds, settle_seconds, accepts_empty)
        return limits, frozenset({self.layout.data, self.layout.state})

    def _folders(self) -> list[WatchedFolder]:
        return [
            WatchedFolder(name, (self.layout.home / source.path.expanduser()).resolve(), source.exclude)
            for name, source in self.settings.sources.items()
        ]


@functools.cache
def _on_a_server(url: str) -> Ledger:
    """One per process: servers look every half minute, and connections are dear there."""
    return Ledger(url)


def open_home(
    path: Path | None = None,
    *,
    settings: Settings | None = None,
    makes_no_ledger: bool = False,
    only_looks: bool = False,
    must_exist: bool = True,
) -> Home:
    """The home at a path, or the one the environment names.

    `makes_no_ledger` makes no ledger where there is none. `only_looks` works on a copy of the ledger: what is
    written is lost, and the home stays as it is to the byte. Settings that are given stand for those of its
    file and of the environment.
    """
    home = (path or home_folder()).expanduser().resolve()
    if re.search(r"\?|%[0-9A-Fa-f]{2}", str(home)):
        raise ConfigError(
            f"{home}: Dagster cannot store in a folder with '?' or '%XX' in its path; rename it."
        )
    if home.exists() and not home.is_dir():
        raise ConfigError(f"{home}: is a file, not a folder; give a home folder.")
    if (makes_no_ledger or only_looks) and must_exist and not home.is_dir():
        raise ConfigError(f"{home}: there is no home folder here; `ingest all --home` makes one.")
    settings = settings or read_settings(home)
    for name in settings.stages.model_extra or {}:
        if name not in GRAPH:
            where = f"{Layout(home).settings_file}: stages.{name}"
            raise ConfigError(f"{where}: no such setting; known here: {', '.join(sorted(GRAPH))}.")
    return Home(Layout(home), settings, makes_no_ledger, only_looks)
