"""From a backend's future to an attempt, and from an attempt to the manifest's row."""

from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

from ingest_assets.model.errors import ItemCancelled
from ingest_assets.runner.attempt import Attempt, described
from ingest_assets.runner.manifest import ManifestRow
from ingest_assets.runner.tickets import Ticket


def attempt_of(future: Future[Any], ticket: Ticket, *, stage: str, now_epoch_s: float) -> Attempt | None:
    """What the backend's future says; nothing when the item was cancelled."""
    if future.cancelled():
        return None
    error = future.exception()
    if error is None:
        attempt: Attempt = future.result()
        return attempt
    if isinstance(error, ItemCancelled):
        return None
    record = described(error, stage=stage, item_id=ticket.item.item_id)
    return Attempt(None, record, ticket.submitted_epoch_s, now_epoch_s)


def row_of(ticket: Ticket, attempt: Attempt, *, stage: str, run_id: str) -> ManifestRow:
    """The manifest's row of a finished attempt."""
    result = attempt.result
    return ManifestRow(
        **_common(ticket, stage, run_id, attempt.ended_epoch_s),
        status="done" if attempt.error is None else "failed",
        outputs=result.outputs if result else (),
        counts={**({"rows": result.rows} if result else {}), **attempt.counts},
        timings={
            "queue_s": round(queue_s(ticket, attempt), 6),
            "exec_s": round(exec_s(attempt), 6),
            "cpu_s": round(attempt.cpu_s, 6),
        },
        error=attempt.error.model_dump() if attempt.error else None,
    )


def cancelled_row(ticket: Ticket, reason: str, *, stage: str, run_id: str, now_epoch_s: float) -> ManifestRow:
    """The manifest's row of an item that was scheduled and will not be finished."""
    error = described(ItemCancelled(reason), stage=stage, item_id=ticket.item.item_id)
    common = _common(ticket, stage, run_id, now_epoch_s)
    return ManifestRow(**common, status="cancelled", error=error.model_dump())


def queue_s(ticket: Ticket, attempt: Attempt) -> float:
    """From ready to started; two clocks may differ by a hair, so never negative."""
    return max(0.0, attempt.started_epoch_s - ticket.waiting_since_epoch_s)


def exec_s(attempt: Attempt) -> float:
    """How long the attempt took where it ran."""
    return max(0.0, attempt.ended_epoch_s - attempt.started_epoch_s)


def _common(ticket: Ticket, stage: str, run_id: str, finished_epoch_s: float) -> dict[str, Any]:
    return {
        "stage": stage,
        "item_id": ticket.item.item_id,
        "attempt_no": ticket.attempt_no,
        "run_id": run_id,
        "fingerprint": ticket.item.fingerprint,
        "cfg_hash": ticket.item.cfg_hash,
        "finished_at": datetime.fromtimestamp(finished_epoch_s, UTC).isoformat(timespec="milliseconds"),
    }
