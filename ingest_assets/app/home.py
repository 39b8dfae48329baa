"""A home folder: its settings, ledger, queue, stages, tables and plans."""

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
from ingest_assets.intake.batches import assign_batches
from ingest_assets.intake.duplicates import Claims
from ingest_assets.intake.folders.scan import (
    ScanLimits,
    ScanReport,
    WatchedFolder,
    add_folder,
    preview,
    register,
    remove_folder,
    scan,
    watched_sources,
)
from ingest_assets.intake.ledger import Ledger, Source
from ingest_assets.intake.ledger_copy import open_copy
from ingest_assets.intake.queue.artifacts import Artifact
from ingest_assets.intake.queue.queue import Filter, Queue
from ingest_assets.settings.execution import StageOptions
from ingest_assets.settings.read import home_folder, read_settings
from ingest_assets.settings.tree import Settings, StagesSettings
from ingest_assets.stages.base import Stage, config_hash, set_id, work_items
from ingest_assets.stages.documents import AcquiredFile, KnownFile, LostArtifact
from ingest_assets.storage.model_sets import Family, SetState
from ingest_assets.storage.parquet import read_footer
from ingest_assets.storage.table import Parts, Table, open_table


def resolve_model_folders(settings: Settings, layout: Layout) -> Settings:
    """Return the settings with absolute model folders. Relative ones start at the home, not at the current
    folder."""
    home, embeddings, dense = layout.home, settings.embeddings, settings.embeddings.dense
    # The model name of an endpoint is never a folder.
    is_remote = dense.provider == "openai" or (dense.provider == "auto" and dense.remote.url)
    dense_paths = {
        "model": dense.model if is_remote else _folder_or_name(dense.model, home),
        "exports_path": _folder(dense.exports_path, home),
    }
    sparse_paths = {"model": _folder_or_name(embeddings.sparse.model, home)}
    cache_path = {"path": _folder(embeddings.cache.path or str(layout.cache), home)}
    embeddings_update = {
        "dense": dense.model_copy(update=dense_paths),
        "sparse": embeddings.sparse.model_copy(update=sparse_paths),
        "cache": embeddings.cache.model_copy(update=cache_path),
    }
    parsing_paths = {"artifacts_path": _folder(settings.parsing.artifacts_path, home)}
    chunks_paths = {"tokenizer": _folder_or_name(settings.chunks.tokenizer, home)}
    sections = {
        "embeddings": embeddings.model_copy(update=embeddings_update),
        "parsing": settings.parsing.model_copy(update=parsing_paths),
        "chunks": settings.chunks.model_copy(update=chunks_paths),
    }
    return settings.model_copy(update=sections)


def _folder(path: str, home: Path) -> str:
    return str(home / Path(path).expanduser()) if path else ""


def _folder_or_name(model: str, home: Path) -> str:
    """Return the path of a folder below the home, or the model name if there is no such folder."""
    folder = home / Path(model).expanduser()
    return str(folder) if model and model not in PACKAGED and folder.is_dir() else model


def is_due(artifact: Artifact, deadline: float) -> bool:
    """True if an artifact can be leased by the deadline: its waiting time or the lease on it has ended."""
    if artifact.state == "queued":
        return artifact.not_before <= deadline
    return artifact.lease_expires is not None and artifact.lease_expires <= deadline


@dataclass(frozen=True)
class Home:
    """A home folder, opened. Ledger, queue and stages are opened on first use."""

    layout: Layout
    settings: Settings
    creates_ledger: bool = True
    read_only: bool = False

    @functools.cached_property
    def ledger(self) -> Ledger:
        """The ledger of documents; for a read-only home, a temporary copy."""
        location = self.settings.intake.ledger.get_secret_value() or self.layout.ledger
        if self.read_only:
            return open_copy(location)
        if isinstance(location, str):
            return _server_ledger(location)
        is_absent = not self.creates_ledger and not location.is_file()
        return Ledger(None if is_absent else location)

    @functools.cached_property
    def queue(self) -> Queue:
        """The queue of artifacts to acquire."""
        return Queue(self.ledger.database, self.settings.queue)

    @functools.cached_property
    def stages(self) -> dict[str, Stage]:
        """The configured stages; raises `ConfigError` when settings contradict each other."""
        settings = self.resolved_settings
        return {stage: node.make(settings) for stage, node in self.graph.items()}

    def validate(self) -> None:
        """Raise `ConfigError` when settings contradict each other."""
        _ = self.stages

    def spec(self, stage: str) -> TableSpec:
        """Return a stage's table, with the asset that the stage writes now.

        Not cached: a model switch, also in another process, moves tables between assets.
        """
        return replace(self.stages[stage].spec, asset=self.asset(stage))

    @functools.cached_property
    def graph(self) -> dict[str, Node]:
        """The enabled stages, in the order they run."""
        return graph_of(self.settings)

    @functools.cached_property
    def configuration_hash(self) -> str:
        """A hash of everything except documents that affects rows."""
        return sha256_text(canonical_json([config_hash(stage) for stage in self.stages.values()]))

    @functools.cached_property
    def requested_sets(self) -> dict[str, SetState]:
        """The configured model set of each embedding family."""
        return {
            name: SetState(set_id(stage), stage.footer().get("model_id", ""))
            for name, stage in self.stages.items()
            if GRAPH[name].has_sets
        }

    def family(self, stage: str) -> Family:
        """Return the model sets of an embedding family."""
        return Family(self.layout, self.serving_asset(stage))

    @property
    def resolved_settings(self) -> Settings:
        """The settings with absolute model folders."""
        return resolve_model_folders(self.settings, self.layout)

    def options(self, stage: str) -> StageOptions:
        """Return a stage's options from the settings."""
        options: StageOptions = getattr(self.settings.stages, stage, StageOptions())
        if stage in (self.settings.stages.model_extra or {}) or stage not in StagesSettings.model_fields:
            options = GRAPH[stage].options.model_copy(
                update={name: getattr(options, name) for name in options.model_fields_set}
            )
        execution = self.settings.execution.with_overrides(options.execution)
        return options.model_copy(update={"execution": execution})

    def asset(self, stage: str) -> str:
        """Return the asset that a stage writes. During a model switch it is not the serving one."""
        if not GRAPH[stage].has_sets:
            return self.serving_asset(stage)
        return self.family(stage).asset_of(self.requested_sets[stage].set)

    def serving_asset(self, stage: str) -> str:
        """Return the asset that readers use; it is also the name in Dagster."""
        return GRAPH[stage].table.asset

    def table(self, stage: str, batch: str) -> Table:
        """Return a batch's table as the stage writes it; raise `TableMissing` if there is none."""
        return open_table(self.layout, self.asset(stage), [batch])

    def tables(self, stage: str, *, being_built: bool = False) -> Table:
        """Return the tables of all batches: the serving ones, or those that the stage writes.

        Leaves out damaged tables, which will be rebuilt.
        """
        asset = self.asset(stage) if being_built else self.serving_asset(stage)
        folder = self.layout.asset_folder(asset)
        intact = [path for path in sorted(folder.glob("*.parquet")) if read_footer(path) is not None]
        return Table(asset, tuple(intact))

    def plan(self, stage: str, batch: str, read: Sequence[Table] = ()) -> list[WorkItem]:
        """Return the work items of a stage for one batch, in row order, each with its stored record.

        A stage that reads no tables works on the ledger's documents. `read` are the tables that it reads, if
        they are already open.
        """
        node, spec, configured = GRAPH[stage], self.spec(stage), self.stages[stage]
        stored = read_footer(self.layout.table(spec.asset, batch))
        staged = Parts(self.layout, spec, batch).records()
        if node.reads:
            tables = list(read) or [self.table(above, batch) for above in node.reads]
            claims = [Claims(self.ledger).of(batch)] if configured.compares_documents else []
            candidates = configured.candidates(*tables, *claims)
        else:
            candidates = configured.candidates(self._known_documents(batch))
        return list(work_items(configured, candidates, self.layout, batch, stored, staged, spec))

    def _known_documents(self, batch: str) -> list[KnownFile | AcquiredFile | LostArtifact]:
        """Return a batch's existing files and artifacts, and its abandoned artifacts, in intake order."""
        folders = {source.name: source.path for source in self.ledger.sources()}
        queued = {artifact.artifact_id: artifact for artifact in self.queue.find(Filter(batch=batch))}
        documents: dict[int, KnownFile | AcquiredFile | LostArtifact] = {
            artifact.doc_seq or 0: LostArtifact(artifact.artifact_id, last.category, last.code, last.message)
            for artifact in queued.values()
            if artifact.state == "error" and (last := artifact.last_error) is not None
        }
        for document in self.ledger.documents(batch=batch):
            if document.is_deleted():
                continue
            names = ("doc_id", "batch", "seq", "source", "content_hash", "size_bytes")
            common: dict[str, Any] = {name: getattr(document, name) for name in names}
            if document.resolver is None:
                path = folders[document.source] / document.path
                documents[document.seq] = KnownFile(path=str(path), **common)
                continue
            artifact = queued[document.doc_id]
            documents[document.seq] = AcquiredFile(
                path=str(self.layout.blob(document.content_hash)),
                uri=artifact.url or Path(artifact.path or "").as_uri(),
                mime=artifact.mime or "",
                resolver=artifact.resolver,
                host=artifact.host or None,
                etag=artifact.etag,
                last_modified=artifact.last_modified,
                meta=canonical_json(artifact.meta) if artifact.meta else None,
                **common,
            )
        return [documents[seq] for seq in sorted(documents)]

    def pending_artifacts(self, batch: str, due_at: float | None = None) -> list[Artifact]:
        """Return the artifacts of a batch still to be acquired; with `due_at`, only those due by then."""
        pending = [a for a in self.queue.find(Filter(batch=batch)) if a.state in ("queued", "in_progress")]
        return [artifact for artifact in pending if due_at is None or is_due(artifact, due_at)]

    def assign_batches(self) -> set[str]:
        """Assign newly queued artifacts to batches and return these batches."""
        return assign_batches(self.ledger, self.settings.batches, time.time())

    def sources(self) -> list[Source]:
        """Return the watched folders, from commands and from the settings."""
        return watched_sources(self.ledger, self._folders())

    def watch(self, folder: Path) -> Source:
        """Watch a folder, unless it is watched already."""
        folders = self._folders()
        register(self.ledger, folders)
        source = add_folder(self.ledger, folder)
        if source.name not in {folder.name for folder in folders}:  # else the settings keep it watched
            self.watch_as(source.name, source.path)
        return source

    def unwatch(self, name: str, *, keeps_documents: bool = False) -> int:
        """Stop watching a folder; return how many documents leave the tables.

        The folder can be unwatched already, with its documents kept; one in the settings is refused.
        """
        if name in {folder.name for folder in self._folders()}:
            raise ConfigError(f"{name!r} is in {self.layout.settings_file}; remove [sources.{name}] there.")
        if name not in {source.name for source in self.ledger.sources()}:
            raise ConfigError(f"No watched folder {name!r}; `ingest watch list` shows them.")
        return remove_folder(self.ledger, name, time.time(), keeps_documents=keeps_documents)

    def watch_as(self, name: str, folder: Path) -> None:
        """Watch a folder under a fixed name; the folder may have moved."""
        self.ledger.put_source(Source(name, folder), time.time())

    def scan(self, budget_seconds: float = float("inf"), settle_seconds: float = 0.0) -> ScanReport:
        """Assign queued artifacts to batches, and update the ledger from the watched folders."""
        self.assign_batches()
        return scan(self.ledger, self._folders(), *self._limits(budget_seconds, settle_seconds))

    def preview_scan(self, budget_seconds: float = float("inf")) -> ScanReport:
        """Return the result of a scan, without writing. Stops hashing files after the budget."""
        return preview(self.ledger, self._folders(), *self._limits(budget_seconds))

    def _limits(
        self, budget_seconds: float, settle_seconds: float = 0.0
    ) -> tuple[ScanLimits, frozenset[Path]]:
        """Return the limits of a scan, and the home's own folders, which it skips."""
        accepts_empty = self.settings.intake.accept_empty_folders
        limits = ScanLimits(self.settings.batches, budget_seconds, settle_seconds, accepts_empty)
        return limits, frozenset({self.layout.data, self.layout.state})

    def _folders(self) -> list[WatchedFolder]:
        return [
            WatchedFolder(name, (self.layout.home / source.path.expanduser()).resolve(), source.exclude)
            for name, source in self.settings.sources.items()
        ]


@functools.cache
def _server_ledger(url: str) -> Ledger:
    """Cached: sensors open the ledger every half minute, and connecting to a server is slow."""
    return Ledger(url)


def open_home(
    path: Path | None = None,
    *,
    settings: Settings | None = None,
    creates_ledger: bool = True,
    read_only: bool = False,
    must_exist: bool = True,
) -> Home:
    """Open the home at a path; the default is that of `home_folder`.

    With `creates_ledger=False` a missing ledger is not created. `read_only` works on a temporary copy of the
    ledger, so no file of the home changes. `settings` replace those of the settings file and the environment.
    """
    home = (path or home_folder()).expanduser().resolve()
    if re.search(r"\?|%[0-9A-Fa-f]{2}", str(home)):
        raise ConfigError(
            f"{home}: Dagster cannot store in a folder with '?' or '%XX' in its path. Rename the folder."
        )
    if home.exists() and not home.is_dir():
        raise ConfigError(f"{home}: is a file, not a folder. Give a home folder.")
    if (not creates_ledger or read_only) and must_exist and not home.is_dir():
        raise ConfigError(
            f"{home}: there is no home folder here. `ingest all --home {home} --input FOLDER` creates one."
        )
    settings = settings or read_settings(home)
    for name in settings.stages.model_extra or {}:
        if name not in GRAPH:
            where = f"{Layout(home).settings_file}: stages.{name}"
            raise ConfigError(f"{where}: no such setting; known here: {', '.join(sorted(GRAPH))}.")
    return Home(Layout(home), settings, creates_ledger, read_only)
