"""The failure inbox of a home: every failed document, once per stage, and how to retry or forget it.

Failures are stored in the footers of tables and, for abandoned artifacts, in the queue. An abandoned artifact
is also in a footer once its batch has run; the inbox then takes it from the queue.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ingest_assets.app.driver import Executor, RunReport, finish, refresh, require_ready, run_batches
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.graph import FIRST_STAGE, GRAPH
from ingest_assets.app.home import Home
from ingest_assets.app.inspect import doc_id_of_path, find_document, first_few, ids_ending_in
from ingest_assets.app.model_switch import lock_tables
from ingest_assets.core.errors import Category, ConfigError, StageError, is_abandoned
from ingest_assets.intake.ledger import Document
from ingest_assets.intake.queue.catalogue import SOURCE
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
        """Return the failure as a JSON object."""
        document_fields = ("doc_id", "stage", "batch", "source")
        error_fields = ("code", "category", "message", "retryable", "detail")
        return {
            **{name: getattr(self, name) for name in document_fields},
            **{name: getattr(self.error, name) for name in error_fields},
            **{name: getattr(self, name) for name in ("attempts", "failed_at", "file")},
        }


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """Selects failures; None matches everything."""

    stage: str | None = None
    category: Category | None = None
    source: str | None = None
    batch: str | None = None

    def __contains__(self, failure: FailedDocument) -> bool:
        expected = (self.stage, self.category, self.source, self.batch)
        actual = (failure.stage, failure.error.category, failure.source, failure.batch)
        return all(value in (None, own) for value, own in zip(expected, actual, strict=True))


def read_inbox(home: Home) -> list[FailedDocument]:
    """Return all failures of documents that still exist, in stage order."""
    by_stage = {stage: list(_failures_in_tables(home, stage)) for stage in home.graph}
    by_stage[FIRST_STAGE] += _failures_in_queue(home)
    return [failure for stage in home.graph for failure in by_stage[stage]]


def _failures_in_tables(home: Home, stage: str) -> Iterator[FailedDocument]:
    folders = {source.name: source.path for source in home.ledger.sources()}
    for path in sorted(home.layout.asset_folder(home.asset(stage)).glob("*.parquet")):
        footer = read_footer(path)
        stored = footer.failures if footer is not None else {}
        errors = {item: failure.error for item, failure in stored.items() if not is_abandoned(failure.error)}
        documents = {d.doc_id: d for d in home.ledger.documents(batch=path.stem)} if errors else {}
        for item, error in errors.items():
            document = documents.get(item)
            if document is not None and not document.is_deleted():
                file = file_of(document, folders)
                yield FailedDocument(item, stage, path.stem, document.source, file, error)


def file_of(document: Document, folders: Mapping[str, Path]) -> str:
    """Return a document's path in its source's folder, or the URL or path that the queue fetched it from."""
    if document.resolver is not None or document.source not in folders:
        return document.path
    return str(folders[document.source] / document.path)


def _failures_in_queue(home: Home) -> Iterator[FailedDocument]:
    for artifact in home.queue.failures():
        failure = artifact.last_error
        if failure is None:
            continue
        error = StageError(
            stage=FIRST_STAGE,
            item_id=artifact.artifact_id,
            category=failure.category,
            code=failure.code,
            message=failure.message,
            retryable=failure.retryable,
            detail={"given_up": True, "resolver": artifact.resolver},
        )
        failed_at = (
            None if artifact.finished_at is None else datetime.fromtimestamp(artifact.finished_at, UTC)
        )
        yield FailedDocument(
            doc_id=artifact.artifact_id,
            stage=FIRST_STAGE,
            batch=artifact.batch or "",
            source=SOURCE,
            file=artifact.origin,
            error=error,
            is_in_queue=True,
            attempts=artifact.attempts,
            failed_at=None if failed_at is None else failed_at.isoformat(timespec="milliseconds"),
        )


def with_attempts(home: Home, failures: Sequence[FailedDocument]) -> list[FailedDocument]:
    """Return the failures with attempts and time of failure from the manifests, newest first.

    Reads the whole manifests of their stages.
    """
    attempts: dict[tuple[str, str], list[ManifestRow]] = {
        (failure.stage, failure.doc_id): [] for failure in failures if not failure.is_in_queue
    }
    for stage in dict.fromkeys(stage for stage, _ in attempts):
        for row in read_manifest(home.layout.manifest(stage)):
            if (stage, row.item_id) in attempts and row.status != "cancelled":
                attempts[stage, row.item_id].append(row)
    completed = []
    for failure in failures:
        if not failure.is_in_queue:
            rows = attempts[failure.stage, failure.doc_id]
            failed = [row.finished_at for row in rows if row.status == "failed"]
            failure = replace(failure, attempts=len(rows), failed_at=failed[-1] if failed else None)
        completed.append(failure)
    return sorted(completed, key=lambda failure: failure.failed_at or "", reverse=True)


def read_attempts(home: Home, doc_id: str) -> list[ManifestRow]:
    """Return all attempts at a document, in the order they ended."""
    manifests = (read_manifest(home.layout.manifest(stage)) for stage in GRAPH)
    rows = [row for manifest in manifests for row in manifest if row.item_id == doc_id]
    return sorted(rows, key=lambda row: row.finished_at)


# Release: forget failures, so that the next run or a retry processes the documents again.

# Databases limit the parameters of one statement; SQLite before 3.32 to 999.
_IDS_PER_TRANSACTION = 500


def requeue(home: Home, failures: Sequence[FailedDocument]) -> None:
    """Queue abandoned artifacts again, with their attempts reset."""
    ids = [failure.doc_id for failure in failures if failure.is_in_queue]
    for start in range(0, len(ids), _IDS_PER_TRANSACTION):
        chunk = Filter(artifact_ids=ids[start : start + _IDS_PER_TRANSACTION])
        home.queue.retry_failed(time.time(), chunk, reset_attempts=True)


def release(
    home: Home, failures: Sequence[FailedDocument], on_wait: Callable[[Path], None] = lambda _path: None
) -> list[FailedDocument]:
    """Forget failures, so that the next run retries their documents. Return those that still existed.

    Waits for runs that are writing these tables; `on_wait` is called with the lock that is held.
    """
    requeue(home, failures)
    tables: dict[tuple[str, str], set[str]] = {}
    for failure in failures:
        if not failure.is_in_queue:
            tables.setdefault((failure.stage, failure.batch), set()).add(failure.doc_id)
    forgotten: dict[tuple[str, str], list[str]] = {}
    for (stage, batch), ids in tables.items():
        locks = lock_tables(home, stage, batch, on_wait, reads=False)
        try:
            forgotten[stage, batch] = forget_failures(home.layout, home.spec(stage), batch, ids)
        finally:
            locks.release()
        home.ledger.touch([batch])
    return [f for f in failures if f.is_in_queue or f.doc_id in forgotten[f.stage, f.batch]]


# Retry: run failed documents again now.

RetryStatus = Literal["done", "failed", "waiting", "unfinished", "gone"]


@dataclass(frozen=True, slots=True)
class RetryResult:
    """The result of retrying a document; `unfinished` when its batch stopped, `waiting` in the queue."""

    doc_id: str
    became: RetryStatus
    message: str = ""
    stage: str | None = None
    code: str | None = None


def retry(
    home: Home, failures: Sequence[FailedDocument], config: dict[str, Any], executor: Executor
) -> tuple[list[RetryResult], RunReport]:
    """Run the batches of these documents. Other failed documents in them are not retried.

    Scans the folders first: a file may have been fixed.
    """
    require_ready(home, list(home.graph), RunOptions(**config))
    if not all(failure.is_in_queue for failure in failures):
        refresh(home)
    requeue(home, failures)
    batches: dict[str, dict[str, None]] = {}
    for failure in failures:
        batches.setdefault(failure.batch, {})[failure.doc_id] = None
    ids_by_batch = {batch: list(batches[batch]) for batch in sorted(batches)}
    report = run_batches(home, list(home.graph), config, executor, reason="retry", retry=ids_by_batch)
    finish(home, executor, report)
    return _retry_results(home, ids_by_batch, report), report


def _retry_results(
    home: Home, ids_by_batch: Mapping[str, Sequence[str]], report: RunReport
) -> list[RetryResult]:
    """Return the result of each document. The tables of a batch that stopped can be older than this run."""
    fresh = {error.item_id: error for error in report.errors}
    stored = {failure.doc_id: failure.error for failure in read_inbox(home)}
    results = []
    for batch, ids in ids_by_batch.items():
        errors = fresh if batch in report.broken else stored | fresh
        for doc_id in ids:
            if (error := errors.get(doc_id)) is not None:
                results.append(RetryResult(doc_id, "failed", error.message, error.stage, error.code))
            elif batch in report.broken:
                results.append(RetryResult(doc_id, "unfinished", report.broken[batch]))
            else:
                results.append(_result_without_failure(home, doc_id))
    return results


def _result_without_failure(home: Home, doc_id: str) -> RetryResult:
    artifact = home.queue.get(doc_id)
    if artifact is not None and artifact.state in ("queued", "in_progress"):
        last = artifact.last_error
        reason = "the queue will retry it later" + (f": {last.message}" if last else "")
        return RetryResult(doc_id, "waiting", reason, code=last.code if last else None)
    document = home.ledger.document(doc_id)
    if artifact is not None and artifact.state == "skipped":
        return RetryResult(doc_id, "done", f"has the same bytes as {artifact.duplicate_of}")
    if document is None or document.is_deleted():
        return RetryResult(doc_id, "gone", "its file no longer exists")
    return RetryResult(doc_id, "done")


# Selection: which failures a command applies to.


def require_known(home: Home, selection: FailureFilter) -> None:
    """Raise `ConfigError` for a stage, batch or source that does not exist, instead of matching nothing."""
    if selection.stage is not None and selection.stage not in GRAPH:
        raise ConfigError(f"--stage: {selection.stage!r} is not one of {', '.join(map(repr, GRAPH))}.")
    where = home.layout.home
    if selection.batch is not None and selection.batch not in home.ledger.batches():
        raise ConfigError(f"--batch: no batch {selection.batch!r} in {where}; `ingest status` lists them.")
    names = {source.name for source in (*home.sources(), *home.ledger.sources())} | {SOURCE}
    if selection.source is not None and selection.source not in names:
        known = ", ".join(sorted(names))
        raise ConfigError(f"--source: no source {selection.source!r} in {where}; known here: {known}.")


def select_failures(
    home: Home, documents: Sequence[str], selection: FailureFilter, *, takes_all: bool
) -> list[FailedDocument]:
    """Return the failures that a command applies to. Selecting all of them needs `takes_all`."""
    if not documents and selection == FailureFilter() and not takes_all:
        raise ConfigError("No failures selected. Give documents, a filter such as --stage, or --all.")
    if documents and takes_all:
        raise ConfigError("Documents and --all exclude each other; give one of them.")
    require_known(home, selection)
    inbox = read_inbox(home)
    failed = {failure.doc_id for failure in inbox}
    ids = [resolve_doc_id(home, inbox, document) for document in documents]
    for doc_id in ids:
        if doc_id not in failed:
            raise ConfigError(f"{doc_id} has not failed; `ingest failures list` shows failed documents.")
    return [failure for failure in inbox if failure in selection and (not ids or failure.doc_id in ids)]


def resolve_doc_id(home: Home, failures: Sequence[FailedDocument], suffix: str) -> str:
    """Return the id itself, the only failed id that ends with `suffix`, or the only known one."""
    suffix = doc_id_of_path(home, suffix.strip())
    failed = dict.fromkeys(failure.doc_id for failure in failures)
    if suffix in failed or home.ledger.document(suffix) or home.queue.get(suffix):
        return suffix
    matches = ids_ending_in(failed, suffix)
    if len(matches) == 1 and suffix:
        return matches[0]
    if matches:
        shown = first_few(matches)
        raise ConfigError(f"{len(matches)} failed documents end in {suffix!r}: {shown}; give more of the id.")
    return find_document(home, suffix).doc_id
