"""Trying failed documents again, now, and saying what became of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ingest_assets.cli.corpus import refresh_corpus
from ingest_assets.cli.runs import RunReport, run_batches
from ingest_assets.defs.execution import refuse_early
from ingest_assets.defs.home import Home
from ingest_assets.defs.inbox import FailedDocument, read_inbox
from ingest_assets.defs.releasing import requeue
from ingest_assets.defs.run_config import StageRunConfig

Became = Literal["done", "failed", "waiting", "unfinished", "gone"]


@dataclass(frozen=True, slots=True)
class Retried:
    """What became of a document; `waiting` for the queue, or `unfinished` because its batch stopped."""

    doc_id: str
    became: Became
    message: str = ""
    stage: str | None = None
    code: str | None = None

    def as_object(self) -> dict[str, Any]:
        """For programs."""
        return {name: getattr(self, name) for name in Retried.__dataclass_fields__}


def retry(
    home: Home, failures: Sequence[FailedDocument], config: dict[str, Any], progress: str
) -> tuple[list[Retried], RunReport]:
    """Run the batches of these documents; of all that failed in them, only these are tried again.

    The folders are looked at first, for the file itself may have been mended.
    """
    refuse_early(home, list(home.graph), StageRunConfig(**config))
    if not all(failure.is_in_queue for failure in failures):
        home.scan()
    requeue(home, failures)
    batches: dict[str, dict[str, None]] = {}
    for failure in failures:
        batches.setdefault(failure.batch, {})[failure.doc_id] = None
    wanted = {batch: list(batches[batch]) for batch in sorted(batches)}
    report = run_batches(home, list(home.graph), config, reason="retry", progress=progress, retry=wanted)
    refresh_corpus(home, report)
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
