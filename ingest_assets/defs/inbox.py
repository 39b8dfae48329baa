"""The failure inbox of a home: what could not be done, over every stage, each document once per stage.

Two places know of failures: the footers of the tables, and the queue, which gives artifacts up. What the
queue has given up stands in a footer too once its batch has run, so there only the queue is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home
from ingest_assets.intake.artifacts import Artifact, Failure
from ingest_assets.intake.catalogue import SOURCE
from ingest_assets.intake.ledger import Document
from ingest_assets.model.errors import Category, StageError, is_given_up
from ingest_assets.model.items import WorkItem
from ingest_assets.runner import ManifestRow, read_manifest
from ingest_assets.storage.footer import read_footer

ACQUIRING = next(iter(GRAPH))  # the stage that the queue works for


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

    def waits_for_a_change(self) -> bool:
        """True when no ordinary run tries it again while everything is as it is."""
        return WorkItem(self.doc_id, "", known_failure=self.error).is_known_to_fail()

    def as_object(self) -> dict[str, Any]:
        """For programs."""
        error = self.error
        return {
            "doc_id": self.doc_id,
            "stage": self.stage,
            "batch": self.batch,
            "source": self.source,
            "code": error.code,
            "category": error.category,
            "message": error.message,
            "retryable": error.retryable,
            "detail": error.detail,
            "attempts": self.attempts,
            "failed_at": self.failed_at,
            "file": self.file,
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

    def is_everything(self) -> bool:
        return self == Wanted()


def read_inbox(home: Home) -> list[FailedDocument]:
    """Every failure of a document that is still there, stage after stage."""
    found = {stage: list(_of_tables(home, stage)) for stage in home.graph}
    found[ACQUIRING] += _of_the_queue(home)
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
        if artifact.last_error is not None:
            yield FailedDocument(
                doc_id=artifact.artifact_id,
                stage=ACQUIRING,
                batch=artifact.batch or "",
                source=SOURCE,
                file=artifact.origin,
                error=_error(artifact, artifact.last_error),
                is_in_queue=True,
                attempts=artifact.attempts,
                failed_at=None if artifact.finished_at is None else _as_text(artifact.finished_at),
            )


def _error(artifact: Artifact, failure: Failure) -> StageError:
    return StageError(
        stage=ACQUIRING,
        item_id=artifact.artifact_id,
        category=failure.category,
        code=failure.code,
        message=failure.message,
        retryable=failure.retryable,
        detail={"given_up": True, "resolver": artifact.resolver},
    )


def _as_text(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="milliseconds")


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
    counted = [
        failure if failure.is_in_queue else _counted(failure, tried[failure.stage, failure.doc_id])
        for failure in failures
    ]
    return sorted(counted, key=lambda failure: failure.failed_at or "", reverse=True)


def _counted(failure: FailedDocument, rows: list[ManifestRow]) -> FailedDocument:
    failed = [row.finished_at for row in rows if row.status == "failed"]
    return replace(failure, attempts=len(rows), failed_at=failed[-1] if failed else None)


def attempts_at(home: Home, doc_id: str) -> list[ManifestRow]:
    """Every attempt at a document, in the order they ended."""
    manifests = (read_manifest(home.layout.manifest(stage)) for stage in GRAPH)
    rows = [row for manifest in manifests for row in manifest if row.item_id == doc_id]
    return sorted(rows, key=lambda row: row.finished_at)
