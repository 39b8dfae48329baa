"""Ingest a labelled set into a separate home, search it, and measure the rankings."""

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
from ingest_assets.evaluation.labelled_sets import LabelledSet
from ingest_assets.evaluation.retrieval import Gate, document_figures, passage_figures, passages_of
from ingest_assets.settings.tree import Settings
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.locks import FileLock
from ingest_assets.storage.parquet import read_footer

_SOURCE = "set"


@dataclass(frozen=True, slots=True)
class IngestedSet:
    """The result of ingesting a set. Documents are named by their path below the set's folder."""

    home: Home
    documents: int
    document_of: dict[str, str]  # by chunk
    rejected: dict[str, str]  # reason by document
    failed: dict[str, str]  # message by document
    broken: dict[str, str]  # reason by batch
    seconds: float

    @property
    def searchable(self) -> set[str]:
        """The documents that can be found, because they have a chunk."""
        return set(self.document_of.values())


def evaluation_layout(home: Home, labelled: LabelledSet) -> Layout:
    """Return the home of a set. It is the same each time, so that only changes are ingested again."""
    place = f"-{sha256_text(str(labelled.folder))[:12]}" if labelled.name == "files" else ""
    return Layout(home.layout.evaluation_home(labelled.name + place))


@contextlib.contextmanager
def lock_evaluation(layout: Layout) -> Iterator[None]:
    """Hold the lock that keeps other processes from evaluating the set in this home."""
    lock = FileLock(layout.evaluation_lock)
    if not lock.try_acquire():
        raise IngestError(f"{layout.home}: another `ingest eval retrieval` is running. Wait for its end.")
    try:
        yield
    finally:
        lock.release()


def ingest_set(home: Home, layout: Layout, labelled: LabelledSet, executing: Executing) -> IngestedSet:
    """Run every stage over the set's documents with the settings of `home`, through Dagster."""
    folder = labelled.folder or _write_texts(layout.home / "documents", labelled.texts)
    layout.ledger.parent.mkdir(parents=True, exist_ok=True)
    eval_home = open_home(layout.home, settings=_settings(home))
    stages = list(eval_home.graph)
    try:
        require_ready(eval_home, stages, RunOptions.model_validate({}))
        eval_home.watch_as(_SOURCE, folder)
        scan = refresh(eval_home)
        with executing(eval_home) as executor:
            report = run_batches(eval_home, stages, {}, executor, reason="eval")
            finish(eval_home, executor, report)
        problems = {_name(f"{_SOURCE}:{problem.path}"): problem.reason for _, problem in scan.problems}
        living = [document for document in eval_home.ledger.documents() if not document.is_deleted()]
        failed = {_name(row["doc_id"]): row["message"] for row in failures(eval_home, report.errors)}
        return IngestedSet(
            home=eval_home,
            documents=len(living) + len(problems),
            document_of=_document_of(eval_home),
            rejected=_rejected(eval_home),
            failed=problems | failed,
            broken=report.broken,
            seconds=round(report.wall_seconds, 1),
        )
    finally:
        eval_home.ledger.close()


def _settings(home: Home) -> Settings:
    """Return the home's settings without folders and failure limits: failures are only counted."""
    settings = home.resolved_settings
    stages = {stage: home.options(stage).model_copy(update=NO_BUDGET) for stage in GRAPH}
    return settings.model_copy(
        update={
            "sources": {},
            "stages": settings.stages.model_copy(update=stages),
            "features": settings.features.model_copy(update={"require_parity": False}),
        }
    )


def _write_texts(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write the set's texts into the folder. Keep equal files, and remove all others."""
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


def _document_of(eval_home: Home) -> dict[str, str]:
    chunks = eval_home.tables("chunks")
    if not chunks.paths:
        return {}
    rows = chunks.read(lambda table: table.select("chunk_id", "doc_id"))
    return {chunk_id: _name(doc_id) for chunk_id, doc_id in rows.iter_rows()}


def _rejected(eval_home: Home) -> dict[str, str]:
    verdicts = eval_home.tables("admission")
    if not verdicts.paths:
        return {}
    rows = verdicts.read(lambda table: table.filter(~pl.col("admitted")).select("doc_id", "reject_reason"))
    return {_name(doc_id): reason for doc_id, reason in rows.iter_rows()}


def _name(doc_id: str) -> str:
    return unicodedata.normalize("NFC", doc_id.split(":", 1)[1])


def report_object(ingested: IngestedSet, labelled: LabelledSet, gates: Sequence[Gate]) -> dict[str, Any]:
    """Search for every query of the set and measure the rankings."""
    queries = {query: labelled.queries[query] for query in labelled.relevant}
    chunks = chunk_rankings(ingested.home, queries, ingested.document_of)
    measured: dict[str, Any]
    if labelled.spans:
        measured = _measure_passages(with_fused(chunks), ingested, labelled)
    else:
        rankings = document_rankings(chunks, ingested.document_of).items()
        figures = {
            name: document_figures(best, labelled.relevant, labelled.graded) for name, best in rankings
        }
        measured = {"rankings": figures}
    judged = [gate.judged(measured["rankings"]) for gate in gates]
    is_good = not ingested.failed and not ingested.broken and all(gate["passed"] for gate in judged)
    return {
        "set": labelled.name,
        "home": str(ingested.home.layout.home),
        "models": _models(ingested.home),
        "counts": _counts(ingested, labelled),
        **measured,
        "gates": judged,
        "seconds": ingested.seconds,
        "exit_code": 0 if is_good else 1,
    }


def _measure_passages(
    rankings: dict[str, dict[str, list[str]]], ingested: IngestedSet, labelled: LabelledSet
) -> dict[str, Any]:
    rows = ingested.home.tables("chunks").read(lambda table: table.select("chunk_id", "text"))
    chunks = [(chunk_id, ingested.document_of[chunk_id], text) for chunk_id, text in rows.iter_rows()]
    passages = passages_of(labelled.texts, labelled.spans, chunks)
    in_all = {name: passage_figures(best, passages, list(labelled.spans)) for name, best in rankings.items()}
    texts = {
        name: [query for query, (of, _) in labelled.spans.items() if of == name] for name in labelled.texts
    }
    by_text = {
        text: {name: passage_figures(best, passages, queries) for name, best in rankings.items()}
        for text, queries in texts.items()
    }
    shares = {text: round(passages.aligned_share(text), 4) for text in labelled.texts}
    return {
        "rankings": in_all,
        "by_text": by_text,
        "aligned_share": {"all": round(passages.aligned_share(), 4), **shares},
    }


def _models(home: Home) -> dict[str, dict[str, str]]:
    """Return the models and settings of the embedding tables, from their footers."""
    models: dict[str, dict[str, str]] = {}
    for stage in (name for name in ("dense", "sparse", "lexical") if name in home.graph):
        footer = read_footer(home.tables(stage, being_built=True).paths[0])
        models[stage] = dict(footer.extra) if footer else {}
    return models


def _counts(ingested: IngestedSet, labelled: LabelledSet) -> dict[str, int]:
    relevant = {document for gains in labelled.relevant.values() for document in gains}
    return {
        "documents": ingested.documents,
        "searchable": len(ingested.searchable),
        "rejected": len(ingested.rejected),
        "failed": len(ingested.failed),
        "without_text": len(labelled.missing),
        "lost_relevant": len(relevant - ingested.searchable),
        "chunks": len(ingested.document_of),
        "queries": len(labelled.queries),
        "without_relevant": len(labelled.queries.keys() - labelled.relevant.keys()),
    }
