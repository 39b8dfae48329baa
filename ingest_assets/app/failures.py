"""The failure inbox of a home: what could not be done, over every stage, each document once per stage.

Two places know of failures: the footers of the tables, and the queue, which gives artifacts up. What the
queue has given up stands in a footer too once its batch has run, so there only the queue is asked.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ingest_assets.app.driver import Executor, RunReport, finish, refresh, require_ready, run_batches
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.graph import GRAPH, INTAKE
from ingest_assets.app.home import Home
from ingest_assets.app.inspect import find
from ingest_assets.app.model_switch import held_locks
from ingest_assets.core.errors import Category, ConfigError, StageError, is_given_up
from ingest_assets.intake.ledger import Document
from ingest_assets.intake.queue.acquired import SOURCE
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.runner import ManifestRow, read_manifest
from ingest_assets.storage.parquet import read_footer
from ingest_assets.storage.table import forget_failures


@dataclass(frozen=True, slots=True)
class FailedDocument:
    """One document's failure at one stage. `file` is its path, or the URL it comes from."""

    doc_id: str
    stage: str
    batch: str
    source: str
    file: str
    error: StageError
    is_in_queue: bool = False
    attempts: int = 0
    failed_at: str | None = None

    def as_object(self) -> dict[str, Any]:
        """For programs."""
        of_document = ("doc_id", "stage", "batch", "source")
        of_error = ("code", "category", "message", "retryable", "detail")
        return {
            **{name: getattr(self, name) for name in of_document},
            **{name: getattr(self.error, name) for name in of_error},
            **{name: getattr(self, name) for name in ("attempts", "failed_at", "file")},
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which failures; what is None does not matter."""

    stage: str | None = None
    category: Category | None = None
    source: str | None = None
    batch: str | None = None

    def __contains__(self, failure: FailedDocument) -> bool:
        given = (self.stage, self.category, self.source, self.batch)
        found = (failure.stage, failure.error.category, failure.source, failure.batch)
        return all(want in (None, has) for want, has in zip(given, found, strict=True))


def read_inbox(home: Home) -> list[FailedDocument]:
    """Every failure of a document that is still there, stage after stage."""
    found = {stage: list(_of_tables(home, stage)) for stage in home.graph}
    found[INTAKE] += _of_the_queue(home)
    return [failure for stage in home.graph for failure in found[stage]]


def _of_tables(home: Home, stage: str) -> Iterator[FailedDocument]:
    folders = {source.name: source.path for source in home.ledger.sources()}
    for path in sorted(home.layout.asset_folder(home.asset(stage)).glob("*.parquet")):
        footer = read_footer(path)
        stored = footer.failures if footer is not None else {}
        errors = {item: failure.error for item, failure in stored.items() if not is_given_up(failure.error)}
        known = {d.doc_id: d for d in home.ledger.documents(batch=path.stem)} if errors else {}
        for item, error in errors.items():
            document = known.get(item)
            if document is not None and not document.is_deleted():
                file = file_of(document, folders)
                yield FailedDocument(item, stage, path.stem, document.source, file, error)


def file_of(document: Document, folders: Mapping[str, Path]) -> str:
    """Where a document is: below its source's folder, or where the queue got it."""
    if document.resolver is not None or document.source not in folders:
        return document.path
    return str(folders[document.source] / document.path)


def _of_the_queue(home: Home) -> Iterator[FailedDocument]:
    for artifact in home.queue.failures():
        failure = artifact.last_error
        if failure is None:
            continue
        error = StageError(
            stage=INTAKE,
            item_id=artifact.artifact_id,
            category=failure.category,
            code=failure.code,
            message=failure.message,
            retryable=failure.retryable,
            detail={"given_up": True, "resolver": artifact.resolver},
        )
        ended = None if artifact.finished_at is None else datetime.fromtimestamp(artifact.finished_at, UTC)
        yield FailedDocument(
            doc_id=artifact.artifact_id,
            stage=INTAKE,
            batch=artifact.batch or "",
            source=SOURCE,
            file=artifact.origin,
            error=error,
            is_in_queue=True,
            attempts=artifact.attempts,
            failed_at=None if ended is None else ended.isoformat(timespec="milliseconds"),
        )


def with_attempts(home: Home, failures: Sequence[FailedDocument]) -> list[FailedDocument]:
    """The failures with what the manifests say: how often each was tried, and when it failed last.

    Newest first. Reads the manifests of their stages from end to end.
    """
    tried: dict[tuple[str, str], list[ManifestRow]] = {
        (failure.stage, failure.doc_id): [] for failure in failures if not failure.is_in_queue
    }
    for stage in dict.fromkeys(stage for stage, _ in tried):
        for row in read_manifest(home.layout.manifest(stage)):
            if (stage, row.item_id) in tried and row.status != "cancelled":
                tried[stage, row.item_id].append(row)
    counted = []
    for failure in failures:
        if not failure.is_in_queue:
            rows = tried[failure.stage, failure.doc_id]
            failed = [row.finished_at for row in rows if row.status == "failed"]
            failure = replace(failure, attempts=len(rows), failed_at=failed[-1] if failed else None)
        counted.append(failure)
    return sorted(counted, key=lambda failure: failure.failed_at or "", reverse=True)


def attempts_at(home: Home, doc_id: str) -> list[ManifestRow]:
    """Every attempt at a document, in the order they ended."""
    manifests = (read_manifest(home.layout.manifest(stage)) for stage in GRAPH)
    rows = [row for manifest in manifests for row in manifest if row.item_id == doc_id]
    return sorted(rows, key=lambda row: row.finished_at)


# Forgetting failures: what is released is tried again by the next run, or right away by whoever asks.


# Databases limit the variables of one statement, SQLite before 3.32 to 999.
_IDS_PER_TRANSACTION = 500


def requeue(home: Home, failures: Sequence[FailedDocument]) -> None:
    """Queue again what the queue has given up, with all its attempts before it."""
    ids = [failure.doc_id for failure in failures if failure.is_in_queue]
    for start in range(0, len(ids), _IDS_PER_TRANSACTION):
        some = Filter(artifact_ids=ids[start : start + _IDS_PER_TRANSACTION])
        home.queue.retry_failed(time.time(), some, reset_attempts=True)


def release(
    home: Home, failures: Sequence[FailedDocument], on_wait: Callable[[Path], None] = lambda _path: None
) -> list[FailedDocument]:
    """Forget failures, so that the next run tries their documents again; gives those that were still there.

    Waits for runs that are writing the tables concerned, and tells which.
    """
    requeue(home, failures)
    tables: dict[tuple[str, str], set[str]] = {}
    for failure in failures:
        if not failure.is_in_queue:
            tables.setdefault((failure.stage, failure.batch), set()).add(failure.doc_id)
    forgotten: dict[tuple[str, str], list[str]] = {}
    for (stage, batch), ids in tables.items():
        locks = held_locks(home, stage, batch, on_wait, reads=False)
        try:
            forgotten[stage, batch] = forget_failures(home.layout, home.spec(stage), batch, ids)
        finally:
            locks.release()
        home.ledger.touch([batch])
    return [f for f in failures if f.is_in_queue or f.doc_id in forgotten[f.stage, f.batch]]


# Trying failed documents again, now, and saying what became of each.


Became = Literal["done", "failed", "waiting", "unfinished", "gone"]


@dataclass(frozen=True, slots=True)
class Retried:
    """What became of a document; `waiting` for the queue, or `unfinished` because its batch stopped."""

    doc_id: str
    became: Became
    message: str = ""
    stage: str | None = None
    code: str | None = None


def retry(
    home: Home, failures: Sequence[FailedDocument], config: dict[str, Any], executor: Executor
) -> tuple[list[Retried], RunReport]:
    """Run the batches of these documents; of all that failed in them, only these are tried again.

    The folders are looked at first, for the file itself may have been mended.
    """
    require_ready(home, list(home.graph), RunOptions(**config))
    if not all(failure.is_in_queue for failure in failures):
        refresh(home)
    requeue(home, failures)
    batches: dict[str, dict[str, None]] = {}
    for failure in failures:
        batches.setdefault(failure.batch, {})[failure.doc_id] = None
    wanted = {batch: list(batches[batch]) for batch in sorted(batches)}
    report = run_batches(home, list(home.graph), config, executor, reason="retry", retry=wanted)
    finish(home, executor, report)
    return _what_became(home, wanted, report), report


def _what_became(home: Home, wanted: Mapping[str, Sequence[str]], report: RunReport) -> list[Retried]:
    """In a batch that stopped, what the tables say may be older than this run."""
    fresh = {error.item_id: error for error in report.errors}
    stored = {failure.doc_id: failure.error for failure in read_inbox(home)}
    became = []
    for batch, ids in wanted.items():
        errors = fresh if batch in report.broken else stored | fresh
        for doc_id in ids:
            if (error := errors.get(doc_id)) is not None:
                became.append(Retried(doc_id, "failed", error.message, error.stage, error.code))
            elif batch in report.broken:
                became.append(Retried(doc_id, "unfinished", report.broken[batch]))
            else:
                became.append(_without_failure(home, doc_id))
    return became


def _without_failure(home: Home, doc_id: str) -> Retried:
    artifact = home.queue.get(doc_id)
    if artifact is not None and artifact.state in ("queued", "in_progress"):
        last = artifact.last_error
        why = "the queue tries it again later" + (f": {last.message}" if last else "")
        return Retried(doc_id, "waiting", why, code=last.code if last else None)
    document = home.ledger.document(doc_id)
    if artifact is not None and artifact.state == "skipped":
        return Retried(doc_id, "done", f"has the same bytes as {artifact.duplicate_of}")
    if document is None or document.is_deleted():
        return Retried(doc_id, "gone", "its file is not there any more")
    return Retried(doc_id, "done")


# Which failures a command is about: its documents and filters, and what is wrong with them.


def require_known(home: Home, wanted: Wanted) -> None:
    """A batch or source that does not exist is a slip, and no reason to say that nothing failed."""
    if wanted.stage is not None and wanted.stage not in GRAPH:
        raise ConfigError(f"--stage: {wanted.stage!r} is not one of {', '.join(map(repr, GRAPH))}.")
    where = home.layout.home
    if wanted.batch is not None and wanted.batch not in home.ledger.batches():
        raise ConfigError(f"--batch: no batch {wanted.batch!r} in {where}; `ingest status` lists them.")
    names = {source.name for source in (*home.sources(), *home.ledger.sources())} | {SOURCE}
    if wanted.source is not None and wanted.source not in names:
        known = ", ".join(sorted(names))
        raise ConfigError(f"--source: no source {wanted.source!r} in {where}; known here: {known}.")


def chosen(home: Home, documents: Sequence[str], wanted: Wanted, *, takes_all: bool) -> list[FailedDocument]:
    """The failures to act on: never all of them without being asked to."""
    if not documents and wanted == Wanted() and not takes_all:
        raise ConfigError("Which failures? Give documents, a filter such as --stage, or --all.")
    if documents and takes_all:
        raise ConfigError("Documents and --all contradict each other; give one of them.")
    require_known(home, wanted)
    every = read_inbox(home)
    failed = {failure.doc_id for failure in every}
    ids = [resolved(home, every, document) for document in documents]
    for doc_id in ids:
        if doc_id not in failed:
            raise ConfigError(f"{doc_id} has not failed; `ingest failures list` shows what has.")
    return [failure for failure in every if failure in wanted and (not ids or failure.doc_id in ids)]


def resolved(home: Home, failures: Sequence[FailedDocument], wanted: str) -> str:
    """The id that is meant: exactly that one, the only failed one that ends so, or the only one at all."""
    wanted = wanted.strip()
    failed = dict.fromkeys(failure.doc_id for failure in failures)
    if wanted in failed or home.ledger.document(wanted) or home.queue.get(wanted):
        return wanted
    ending = [doc_id for doc_id in failed if doc_id.endswith(wanted)]
    if len(ending) == 1 and wanted:
        return ending[0]
    if len(ending) > 1:
        first = ", ".join(ending[:5])
        raise ConfigError(f"{len(ending)} failed documents end in {wanted!r}: {first}; give more of the id.")
    return find(home, wanted).doc_id
