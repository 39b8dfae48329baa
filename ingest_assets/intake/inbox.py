"""Reading the queue: its figures, its artifacts, and the failures that can be tried again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import sqlalchemy as sa

from ingest_assets.intake.artifacts import COLUMNS, Artifact, State, storable
from ingest_assets.intake.choosing import IN_PROGRESS, QUEUED
from ingest_assets.intake.ledger import bump
from ingest_assets.intake.schema import artifacts
from ingest_assets.model.errors import Category

IN_ERROR = artifacts.c.state == sa.literal_column("'error'")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which artifacts; what is None does not matter."""

    state: State | None = None
    batch: str | None = None
    host: str | None = None
    resolver: str | None = None
    category: Category | None = None
    artifact_ids: Sequence[str] | None = None

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """For a WHERE clause."""
        wanted = {
            artifacts.c.batch: self.batch,
            artifacts.c.host: self.host,
            artifacts.c.resolver: self.resolver,
            artifacts.c.error_category: self.category,
        }
        found = [column == storable(value) for column, value in wanted.items() if value is not None]
        if self.state is not None:  # one of five words: as a literal, for the partial indices
            found.append(artifacts.c.state == sa.literal_column(f"'{self.state}'"))
        if self.artifact_ids is not None:
            known = [given for given in self.artifact_ids if storable(given) == given]  # no other is stored
            found.append(artifacts.c.artifact_id.in_(known))
        return found


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The queue in figures. `delayed` are queued and wait for their time; ages are in seconds."""

    states: dict[State, int]
    delayed: int
    hosts_in_progress: dict[str, int]
    resolvers_in_progress: dict[str, int]
    expired_leases: int
    oldest_queued_age_s: float | None
    attempts: int

    @property
    def total(self) -> int:
        """All artifacts, in whatever state."""
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class Retried:
    """How many artifacts are queued again (or would be), and the batches that have to run for that."""

    count: int
    batches: set[str] = field(default_factory=set)


def read_stats(connection: sa.Connection, now: float) -> QueueStats:
    """The figures as of now."""
    counts = sa.select(artifacts.c.state, sa.func.count(), sa.func.sum(artifacts.c.attempts))
    by_state = {
        state: (n, tried) for state, n, tried in connection.execute(counts.group_by(artifacts.c.state))
    }
    oldest = connection.scalar(sa.select(sa.func.min(artifacts.c.enqueued_at)).where(QUEUED))
    return QueueStats(
        states={state: by_state.get(state, (0, 0))[0] for state in get_args(State)},
        delayed=_count(connection, QUEUED, artifacts.c.not_before > now),
        hosts_in_progress=_in_progress_by(connection, artifacts.c.host),
        resolvers_in_progress=_in_progress_by(connection, artifacts.c.resolver),
        expired_leases=_count(connection, IN_PROGRESS, artifacts.c.lease_expires <= now),
        oldest_queued_age_s=None if oldest is None else max(0.0, now - oldest),
        attempts=int(sum(tried for _, tried in by_state.values())),
    )


def read_artifacts(
    connection: sa.Connection, wanted: Filter, limit: int | None = None, after_seq: int = 0
) -> list[Artifact]:
    """Artifacts in the order they came in; `after_seq` is the last one of the page before."""
    query = sa.select(*COLUMNS).where(*wanted.conditions(), artifacts.c.seq > after_seq)
    rows = connection.execute(query.order_by(artifacts.c.seq).limit(limit)).mappings()
    return [Artifact.of(row) for row in rows]


def read_due(
    connection: sa.Connection, before: float, batch: str | None = None
) -> dict[str, tuple[int, float]]:
    """Batches with artifacts that can be leased before a time: how many, and since when the first."""
    since = sa.case((QUEUED, artifacts.c.not_before), else_=artifacts.c.lease_expires)
    is_due = (QUEUED & (artifacts.c.not_before <= before)) | (
        IN_PROGRESS & (artifacts.c.lease_expires <= before)
    )
    is_wanted = artifacts.c.batch.is_not(None) if batch is None else artifacts.c.batch == batch
    query = sa.select(artifacts.c.batch, sa.func.count(), sa.func.min(since)).where(is_due, is_wanted)
    return {
        key: (count, first) for key, count, first in connection.execute(query.group_by(artifacts.c.batch))
    }


def find_failed(connection: sa.Connection, wanted: Filter) -> Retried:
    """What `requeue` would put back."""
    conditions = (*wanted.conditions(), IN_ERROR)
    batches = connection.scalars(sa.select(artifacts.c.batch).where(*conditions).distinct())
    return Retried(_count(connection, *conditions), {key for key in batches if key is not None})


def requeue(connection: sa.Connection, wanted: Filter, *, reset_attempts: bool, now: float) -> Retried:
    """Queue failed artifacts again and give their batches a new revision; needs the ledger's lock.

    Who keeps the attempts has one more. The last error stays until the next ending.
    """
    found = find_failed(connection, wanted)
    values: dict[str, Any] = {"state": "queued", "not_before": now, "finished_at": None}
    if reset_attempts:
        values["attempts"] = 0
    connection.execute(artifacts.update().where(*wanted.conditions(), IN_ERROR).values(**values))
    bump(connection, found.batches)
    return found


def requeue_acquired(connection: sa.Connection, wanted: Filter, before: float, now: float) -> Retried:
    """Look again at what was acquired before a time; needs the ledger's lock.

    Documents stay as they are until it is known what became of them.
    """
    is_acquired = artifacts.c.state.in_(("done", "skipped")) & (artifacts.c.finished_at <= before)
    conditions = (*wanted.conditions(), is_acquired)
    batches = set(connection.scalars(sa.select(artifacts.c.batch).where(*conditions).distinct()))
    values: dict[str, Any] = {"state": "queued", "not_before": now, "finished_at": None, "attempts": 0}
    found = connection.execute(artifacts.update().where(*conditions).values(**values))
    bump(connection, batches)
    return Retried(found.rowcount, batches)


def _in_progress_by(connection: sa.Connection, column: sa.Column[str]) -> dict[str, int]:
    query = sa.select(column, sa.func.count()).where(IN_PROGRESS, column != "").group_by(column)
    return {row[0]: row[1] for row in connection.execute(query.order_by(column))}


def _count(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> int:
    return connection.scalar(sa.select(sa.func.count()).select_from(artifacts).where(*conditions)) or 0
