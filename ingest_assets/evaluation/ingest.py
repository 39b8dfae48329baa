"""A home of its own for a labelled set: its documents go through the product as anybody's would."""

import contextlib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ingest_assets.app.driver import finish, refresh, require_ready, run_batches
from ingest_assets.app.execution import NO_BUDGET, RunOptions
from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.report import failures
from ingest_assets.app.search import chunk_rankings, document_rankings, with_fused
from ingest_assets.app.validate import Executing
from ingest_assets.core.errors import IngestError
from ingest_assets.core.identity import sha256_text
from ingest_assets.core.layout import Layout
from ingest_assets.evaluation.labelled import LabelledSet
from ingest_assets.evaluation.retrieval import Gate, document_figures, passage_figures, passages_of
from ingest_assets.settings.tree import Settings
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.locks import FileLock
from ingest_assets.storage.parquet import read_footer

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


def ingest_set(home: Home, layout: Layout, chosen: LabelledSet, executing: Executing) -> Ingested:
    """Run every stage over the set's documents with the settings of `home`, through Dagster."""
    folder = chosen.folder or _written(layout.home / "documents", chosen.texts)
    layout.ledger.parent.mkdir(parents=True, exist_ok=True)
    here = open_home(layout.home, settings=_settings(home))
    stages = list(here.graph)
    try:
        require_ready(here, stages, RunOptions.model_validate({}))
        here.watch_as(_SOURCE, folder)
        scan = refresh(here)
        with executing(here) as executor:
            report = run_batches(here, stages, {}, executor, reason="eval")
            finish(here, executor, report)
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
    settings = home.settings_found
    stages = {stage: home.options(stage).model_copy(update=NO_BUDGET) for stage in GRAPH}
    return settings.model_copy(
        update={
            "sources": {},
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


def report_object(done: Ingested, chosen: LabelledSet, gates: Sequence[Gate]) -> dict[str, Any]:
    """Search for every query of the set and measure what is found."""
    asked = {query: chosen.queries[query] for query in chosen.relevant}
    chunks = chunk_rankings(done.home, asked, done.document_of)
    measured: dict[str, Any]
    if chosen.spans:
        measured = _passages_measured(with_fused(chunks), done, chosen)
    else:
        rankings = document_rankings(chunks, done.document_of).items()
        figures = {name: document_figures(found, chosen.relevant, chosen.graded) for name, found in rankings}
        measured = {"rankings": figures}
    judged = [gate.judged(measured["rankings"]) for gate in gates]
    is_good = not done.failed and not done.broken and all(gate["passed"] for gate in judged)
    return {
        "set": chosen.name,
        "home": str(done.home.layout.home),
        "models": _models(done.home),
        "counts": _counts(done, chosen),
        **measured,
        "gates": judged,
        "seconds": done.seconds,
        "exit_code": 0 if is_good else 1,
    }


def _passages_measured(
    rankings: dict[str, dict[str, list[str]]], done: Ingested, chosen: LabelledSet
) -> dict[str, Any]:
    rows = done.home.tables("chunks").read(lambda table: table.select("chunk_id", "text"))
    chunks = [(chunk_id, done.document_of[chunk_id], text) for chunk_id, text in rows.iter_rows()]
    passages = passages_of(chosen.texts, chosen.spans, chunks)
    in_all = {name: passage_figures(found, passages, list(chosen.spans)) for name, found in rankings.items()}
    texts = {name: [query for query, (of, _) in chosen.spans.items() if of == name] for name in chosen.texts}
    by_text = {
        text: {name: passage_figures(found, passages, queries) for name, found in rankings.items()}
        for text, queries in texts.items()
    }
    shares = {text: round(passages.aligned_share(text), 4) for text in chosen.texts}
    return {
        "rankings": in_all,
        "by_text": by_text,
        "aligned_share": {"all": round(passages.aligned_share(), 4), **shares},
    }


def _models(home: Home) -> dict[str, dict[str, str]]:
    """What the tables themselves say made them."""
    models: dict[str, dict[str, str]] = {}
    for stage in (name for name in ("dense", "sparse", "lexical") if name in home.graph):
        footer = read_footer(home.tables(stage, in_the_making=True).paths[0])
        models[stage] = dict(footer.extra) if footer else {}
    return models


def _counts(done: Ingested, chosen: LabelledSet) -> dict[str, int]:
    wanted = {document for gains in chosen.relevant.values() for document in gains}
    return {
        "documents": done.documents,
        "searchable": len(done.found),
        "rejected": len(done.rejected),
        "failed": len(done.failed),
        "without_text": len(chosen.missing),
        "lost_relevant": len(wanted - done.found),
        "chunks": len(done.document_of),
        "queries": len(chosen.queries),
        "without_relevant": len(chosen.queries.keys() - chosen.relevant.keys()),
    }
