"""A home of its own for a labelled set: its documents go through the product as anybody's would."""

import contextlib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ingest_assets.cli.corpus import refresh_corpus
from ingest_assets.cli.parity_runs import home_named_as_before
from ingest_assets.cli.runs import run_batches
from ingest_assets.cli.summary import failures
from ingest_assets.cli.variants import NO_BUDGET
from ingest_assets.config import Settings, settings_to_json
from ingest_assets.defs.execution import refuse_early
from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.evaluation.labelled.labelled_set import LabelledSet
from ingest_assets.model.errors import IngestError
from ingest_assets.model.identity import sha256_text
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.locks import FileLock

_SOURCE = "set"


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a set's documents. A document goes by its path below the set's folder."""

    home: Home
    documents: int
    document_of: dict[str, str]  # by chunk
    rejected: dict[str, str]  # and why
    failed: dict[str, str]
    broken: dict[str, str]  # batches, and why
    seconds: float

    @property
    def found(self) -> set[str]:
        """Documents that can be found: they have a chunk."""
        return set(self.document_of.values())


def layout_for(home: Home, chosen: LabelledSet) -> Layout:
    """Where a set is ingested: the same place each time, so that only what changed is done again."""
    place = f"-{sha256_text(str(chosen.folder))[:12]}" if chosen.name == "files" else ""
    return Layout(home.layout.evaluation_home(chosen.name + place))


@contextlib.contextmanager
def alone(layout: Layout) -> Iterator[None]:
    """Nobody else evaluates this set here."""
    lock = FileLock(layout.evaluation_lock)
    if not lock.try_acquire():
        raise IngestError(f"{layout.home}: another `ingest eval retrieval` is at this set; wait for its end.")
    try:
        yield
    finally:
        lock.release()


def ingest_set(home: Home, layout: Layout, chosen: LabelledSet, progress: str) -> Ingested:
    """Run every stage over the set's documents with the settings of `home`, through Dagster."""
    folder = chosen.folder or _written(layout.home / "documents", chosen.texts)
    layout.ledger.parent.mkdir(parents=True, exist_ok=True)
    resource = HomeResource(path=str(layout.home), settings=settings_to_json(_settings(home)))
    here = resource.open()
    stages = list(here.graph)
    try:
        refuse_early(here, stages, StageRunConfig.model_validate({}))
        here.watch_as(_SOURCE, folder)
        scan = here.scan()
        with home_named_as_before(layout):
            report = run_batches(here, stages, {}, reason="eval", progress=progress, resource=resource)
            refresh_corpus(here, report, resource)
        problems = {_name(f"{_SOURCE}:{problem.path}"): problem.reason for _, problem in scan.problems}
        living = [document for document in here.ledger.documents() if not document.is_deleted()]
        failed = {_name(each["doc_id"]): each["message"] for each in failures(here, report.errors)}
        return Ingested(
            home=here,
            documents=len(living) + len(problems),
            document_of=_document_of(here),
            rejected=_rejected(here),
            failed=problems | failed,
            broken=report.broken,
            seconds=round(report.wall_seconds, 1),
        )
    finally:
        here.ledger.close()


def _settings(home: Home) -> Settings:
    """Those of the home, with folders as it finds them; a failed document is counted and stops nothing."""
    settings = home.settings_elsewhere()
    stages = {stage: home.options(stage).model_copy(update=NO_BUDGET) for stage in GRAPH}
    return settings.model_copy(
        update={
            "stages": settings.stages.model_copy(update=stages),
            "features": settings.features.model_copy(update={"require_parity": False}),
        }
    )


def _written(folder: Path, texts: Mapping[str, str]) -> Path:
    """The set's texts as files; those that are there already stay untouched, and others go."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path, content = folder / name, text.encode()
        if not path.is_file() or path.read_bytes() != content:
            with replacing(path) as scratch:
                scratch.write_bytes(content)
    for path in folder.iterdir():
        if path.name not in texts:
            path.unlink()
    return folder


def _document_of(here: Home) -> dict[str, str]:
    rows = here.tables("chunks")
    if not rows.paths:
        return {}
    found = rows.read(lambda each: each.select("chunk_id", "doc_id"))
    return {chunk_id: _name(doc_id) for chunk_id, doc_id in found.iter_rows()}


def _rejected(here: Home) -> dict[str, str]:
    verdicts = here.tables("admission")
    if not verdicts.paths:
        return {}
    rows = verdicts.read(lambda each: each.filter(~pl.col("admitted")).select("doc_id", "reject_reason"))
    return {_name(doc_id): reason for doc_id, reason in rows.iter_rows()}


def _name(doc_id: str) -> str:
    return unicodedata.normalize("NFC", doc_id.split(":", 1)[1])
