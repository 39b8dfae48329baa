"""The queue of artifacts to acquire: leases with fencing tokens, limited attempts, limits over all processes.

States: `queued → in_progress → done | skipped | error`. A lease is lost when another call of `lease` has
reclaimed it after it expired; from then on its token has no effect. Times are from the callers' clocks, so
the clocks of all machines must agree to well within a lease's length.
"""

import random
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, get_args

import sqlalchemy as sa

from ingest_assets.core.errors import Category
from ingest_assets.intake.database import Database
from ingest_assets.intake.ledger import bump
from ingest_assets.intake.queue.artifacts import (
    COLUMNS,
    Artifact,
    Ending,
    Failure,
    Lease,
    NewArtifact,
    State,
    storable,
)
from ingest_assets.intake.queue.lease_order import IN_PROGRESS, QUEUED, FreeLeases, choose
from ingest_assets.intake.schema import artifacts
from ingest_assets.settings.intake import QueueOptions

MAX_WAIT_SECONDS = 86_400.0  # a longer Retry-After is retried after a day
_ROWS_PER_TRANSACTION = 1000
_NO_LEASE: Mapping[str, Any] = {"lease_token": None, "leased_by": None, "lease_expires": None}
_IN_ERROR = artifacts.c.state == sa.literal_column("'error'")


@dataclass(frozen=True, slots=True)
class Filter:
    """Selects artifacts; a field that is None matches all."""

    state: State | None = None
    batch: str | None = None
    host: str | None = None
    resolver: str | None = None
    category: Category | None = None
    artifact_ids: Sequence[str] | None = None

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions of a WHERE clause."""
        values = {
            artifacts.c.batch: self.batch,
            artifacts.c.host: self.host,
            artifacts.c.resolver: self.resolver,
            artifacts.c.error_category: self.category,
        }
        conditions = [column == storable(value) for column, value in values.items() if value is not None]
        if self.state is not None:  # one of five words: a literal, for the partial indices
            conditions.append(artifacts.c.state == sa.literal_column(f"'{self.state}'"))
        if self.artifact_ids is not None:
            ids = [text for text in self.artifact_ids if storable(text) == text]  # no others are stored
            conditions.append(artifacts.c.artifact_id.in_(ids))
        return conditions


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Counts of the queue. `delayed` artifacts are queued but not due yet."""

    states: dict[State, int]
    delayed: int
    hosts_in_progress: dict[str, int]
    resolvers_in_progress: dict[str, int]
    expired_leases: int
    oldest_queued_age_s: float | None
    attempts: int

    @property
    def total(self) -> int:
        """Artifacts in all states."""
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class Retried:
    """How many artifacts are (or would be) queued again, and the batches that must run for them."""

    count: int
    batches: set[str] = field(default_factory=set)


def read_artifacts(
    connection: sa.Connection, where: Filter, limit: int | None = None, after_seq: int = 0
) -> list[Artifact]:
    """Return artifacts in the order they were queued; `after_seq` is the last one of the previous page."""
    query = sa.select(*COLUMNS).where(*where.conditions(), artifacts.c.seq > after_seq)
    rows = connection.execute(query.order_by(artifacts.c.seq).limit(limit)).mappings()
    return [Artifact.of(row) for row in rows]


def _in_progress_by(connection: sa.Connection, column: sa.Column[str]) -> dict[str, int]:
    query = sa.select(column, sa.func.count()).where(IN_PROGRESS, column != "").group_by(column)
    return {row[0]: row[1] for row in connection.execute(query.order_by(column))}


def _count(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> int:
    return connection.scalar(sa.select(sa.func.count()).select_from(artifacts).where(*conditions)) or 0


@dataclass(slots=True)
class Enqueued:
    """New ids and known ids, each in input order."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


class Queue:
    """Every call is one transaction; any number of processes can use the queue at the same time."""

    def __init__(
        self,
        database: Database,
        options: QueueOptions,
        rng: random.Random | None = None,
    ) -> None:
        self.database = database
        self._options = options
        self._rng = rng or random.Random()

    def enqueue(self, new: Iterable[NewArtifact], now: float) -> Enqueued:
        """Add artifacts with unknown ids; known ones stay as they are.

        Reads lazily and stores a thousand at a time; a killed import can be repeated.
        """
        report, remaining = Enqueued(), iter(new)
        while group := list(islice(remaining, _ROWS_PER_TRANSACTION)):
            with self.database.begin("enqueue") as connection:
                is_member = artifacts.c.artifact_id.in_([artifact.artifact_id for artifact in group])
                known = set(connection.scalars(sa.select(artifacts.c.artifact_id).where(is_member)))
                fresh: dict[str, dict[str, Any]] = {}
                for artifact in group:
                    if artifact.artifact_id in known or artifact.artifact_id in fresh:
                        report.known.append(artifact.artifact_id)
                    else:
                        fresh[artifact.artifact_id] = artifact.as_row(now)
                if fresh:
                    connection.execute(artifacts.insert(), list(fresh.values()))
            report.new.extend(fresh)
        return report

    def lease(
        self, worker: str, limit: int, now: float, *, ttl_s: float | None = None, batch: str | None = None
    ) -> list[Lease]:
        """Lease at most `limit` artifacts, of one batch if given, and count the attempt.

        A lock excludes other callers between counting the leases and adding new ones, so the limits hold.
        """
        ttl_s = self._options.lease_ttl_seconds if ttl_s is None else ttl_s
        with self.database.begin("lease") as connection:
            self._reclaim_expired(connection, now)
            free = FreeLeases.now(connection, self._options)
            chosen = choose(connection, free, limit, now, batch) if limit > 0 else []
            rows = _locked(connection, artifacts.c.seq.in_(chosen), QUEUED)
            leases, updates = list[Lease](), list[dict[str, Any]]()
            for row in rows:
                values = {
                    "state": "in_progress",
                    "attempts": row["attempts"] + 1,
                    "leased_by": storable(worker),
                    "leased_at": now,
                    "lease_expires": now + ttl_s,
                }
                lease = Lease(uuid.uuid4().hex, now + ttl_s, Artifact.of({**row, **values}))
                leases.append(lease)
                updates.append({"seq": row["seq"], "lease_token": lease.token, **values})
            _update_each(connection, updates)
        return leases

    def _reclaim_expired(self, connection: sa.Connection, now: float) -> None:
        """Put artifacts with expired leases at the end of the queue; after the last attempt, in `error`."""
        updates = []
        for row in _locked(connection, IN_PROGRESS, artifacts.c.lease_expires <= now):
            attempts, allowed = row["attempts"], self._allowed(row)
            worker = f"{row['artifact_id']}: worker {row['leased_by']}"
            fault = f"{worker} stopped responding (attempt {attempts} of {allowed})"
            if attempts < allowed:
                failure = Failure("runtime", "E_LEASE_EXPIRED", f"{fault}; retrying.", retryable=True)
                ending: dict[str, Any] = {"state": "queued", "finished_at": None}
            else:
                text = f"{fault}; check the worker's log and memory, then run `ingest queue retry-failed`."
                failure = Failure("runtime", "E_ATTEMPTS_EXHAUSTED", text, retryable=False)
                ending = {"state": "error", "finished_at": now}
            place = {"seq": row["seq"], "not_before": now}
            updates.append({**place, **_NO_LEASE, **ending, **failure.as_columns()})
        _update_each(connection, updates)

    def workers(self) -> set[str]:
        """Return the names of the workers that hold leases."""
        with self.database.connect() as connection:
            return set(connection.scalars(sa.select(artifacts.c.leased_by).where(IN_PROGRESS).distinct()))

    def expire(self, worker: str, now: float) -> int:
        """Let the leases of a dead worker expire now; return how many."""
        held = artifacts.update().where(IN_PROGRESS, artifacts.c.leased_by == worker)
        with self.database.begin() as connection:
            return connection.execute(held.values(lease_expires=now)).rowcount

    def _allowed(self, row: sa.RowMapping) -> int:
        return int(row["max_attempts"] or self._options.max_job_attempts)

    def heartbeat(self, token: str, now: float, ttl_s: float | None = None) -> bool:
        """Extend a lease to its full length; False if it was lost."""
        ttl_s = self._options.lease_ttl_seconds if ttl_s is None else ttl_s
        with self.database.begin() as connection:
            return _update_held(connection, token, {"lease_expires": now + ttl_s})

    def fail_and_retry(
        self, token: str, failure: Failure, now: float, retry_after_s: float | None = None
    ) -> bool:
        """Queue a failed artifact for a later retry; False if the lease was lost.

        It ends in `error` if the failure is not retryable or this was the last attempt. `retry_after_s`
        replaces the backoff, up to a day.
        """
        with self.database.begin() as connection:
            # Waits for the row lock, unlike other calls: this worker's own heartbeat may hold it.
            rows = _locked(connection, artifacts.c.lease_token == token, IN_PROGRESS, waits=True)
            if not rows:
                return False
            values = {**_NO_LEASE, **failure.as_columns()}
            if failure.retryable and rows[0]["attempts"] < self._allowed(rows[0]):
                backoff_s = self._options.retry_backoff_seconds * 2.0 ** (rows[0]["attempts"] - 1)
                wait_s = backoff_s if retry_after_s is None else max(0.0, retry_after_s)
                wait_s = min(wait_s, MAX_WAIT_SECONDS) + self._rng.uniform(0, self._options.jitter_seconds)
                values |= {"state": "queued", "not_before": now + wait_s}
            else:
                values |= {"state": "error", "finished_at": now}
            return _update_held(connection, token, values)

    def release(self, token: str, now: float, wait_s: float = 0.0) -> bool:
        """Return an artifact to the queue without counting the attempt; False if the lease was lost.

        For workers that stop, quotas and paused hosts.
        """
        values = {**_NO_LEASE, "state": "queued", "not_before": now + min(max(0.0, wait_s), MAX_WAIT_SECONDS)}
        with self.database.begin() as connection:
            return _update_held(connection, token, {**values, "attempts": artifacts.c.attempts - 1})

    def retry_failed(
        self, now: float, where: Filter | None = None, *, reset_attempts: bool = False, dry_run: bool = False
    ) -> Retried:
        """Queue failed artifacts again and let their batches run; a dry run only counts them.

        Without `reset_attempts` each has one more attempt. The last error stays until it ends again.
        """
        attempts = {"attempts": 0} if reset_attempts else {}
        return self._requeue(where, _IN_ERROR, now, attempts, dry_run=dry_run)

    def refresh(self, now: float, where: Filter | None = None, *, older_than_s: float = 0.0) -> Retried:
        """Queue artifacts acquired at least `older_than_s` ago again, to see whether they changed.

        Their documents stay as they are until the refresh ends.
        """
        is_old = artifacts.c.finished_at <= now - older_than_s
        is_acquired = artifacts.c.state.in_(("done", "skipped")) & is_old
        return self._requeue(where, is_acquired, now, {"attempts": 0})

    def _requeue(
        self,
        where: Filter | None,
        condition: sa.ColumnElement[bool],
        now: float,
        attempts: Mapping[str, int],
        *,
        dry_run: bool = False,
    ) -> Retried:
        conditions = (*(where or Filter()).conditions(), condition)
        with self.database.connect() if dry_run else self.database.begin("ledger") as connection:
            keys = connection.scalars(sa.select(artifacts.c.batch).where(*conditions).distinct())
            batches = {key for key in keys if key is not None}
            retried = Retried(_count(connection, *conditions), batches)
            if not dry_run:
                values = {"state": "queued", "not_before": now, "finished_at": None, **attempts}
                connection.execute(artifacts.update().where(*conditions).values(**values))
                bump(connection, batches)
        return retried

    def due(self, batch: str, before: float) -> int:
        """Return how many artifacts of a batch are due before a time; the limits are not considered."""
        return self.due_batches(before, batch).get(batch, (0, 0.0))[0]

    def due_batches(self, before: float, batch: str | None = None) -> dict[str, tuple[int, float]]:
        """Return, for each batch with due artifacts, how many there are and when the first became due."""
        since = sa.case((QUEUED, artifacts.c.not_before), else_=artifacts.c.lease_expires)
        is_due = (QUEUED & (artifacts.c.not_before <= before)) | (
            IN_PROGRESS & (artifacts.c.lease_expires <= before)
        )
        in_batch = artifacts.c.batch.is_not(None) if batch is None else artifacts.c.batch == batch
        query = sa.select(artifacts.c.batch, sa.func.count(), sa.func.min(since)).where(is_due, in_batch)
        with self.database.connect() as connection:
            rows = connection.execute(query.group_by(artifacts.c.batch))
            return {key: (count, first) for key, count, first in rows}

    def stats(self, now: float) -> QueueStats:
        """Return counts of the queue."""
        counts = sa.select(artifacts.c.state, sa.func.count(), sa.func.sum(artifacts.c.attempts))
        oldest = sa.select(sa.func.min(artifacts.c.enqueued_at)).where(QUEUED)
        with self.database.connect() as connection:
            rows = connection.execute(counts.group_by(artifacts.c.state))
            by_state = {state: (count, attempts) for state, count, attempts in rows}
            enqueued_at = connection.scalar(oldest)
            return QueueStats(
                states={state: by_state.get(state, (0, 0))[0] for state in get_args(State)},
                delayed=_count(connection, QUEUED, artifacts.c.not_before > now),
                hosts_in_progress=_in_progress_by(connection, artifacts.c.host),
                resolvers_in_progress=_in_progress_by(connection, artifacts.c.resolver),
                expired_leases=_count(connection, IN_PROGRESS, artifacts.c.lease_expires <= now),
                oldest_queued_age_s=None if enqueued_at is None else max(0.0, now - enqueued_at),
                attempts=int(sum(attempts for _, attempts in by_state.values())),
            )

    def hashes(self) -> set[str]:
        """Return the content hashes of all acquired artifacts."""
        column = artifacts.c.content_hash
        with self.database.connect() as connection:
            return set(connection.scalars(sa.select(column).where(column.is_not(None))))

    def get(self, artifact_id: str) -> Artifact | None:
        """Return the artifact with this id, or None."""
        return next(iter(self.find(Filter(artifact_ids=[artifact_id]))), None)

    def find(self, where: Filter, limit: int | None = None, after_seq: int = 0) -> list[Artifact]:
        """Return artifacts in the order they were queued; `after_seq` is the last of the previous page."""
        with self.database.connect() as connection:
            return read_artifacts(connection, where, limit, after_seq)

    def failures(self, where: Filter | None = None, limit: int | None = None) -> list[Artifact]:
        """Return the artifacts that ended in `error`, with their last error."""
        return self.find(replace(where or Filter(), state="error"), limit)


def _locked(
    connection: sa.Connection, *conditions: sa.ColumnElement[bool], waits: bool = False
) -> Sequence[sa.RowMapping]:
    """Lock rows and return them in queue order; skip rows that another transaction has locked, or wait.

    SQLite has no row locks and needs none: there is one writer.
    """
    query = sa.select(*COLUMNS).where(*conditions).order_by(artifacts.c.not_before, artifacts.c.seq)
    return connection.execute(query.with_for_update(skip_locked=not waits)).mappings().all()


def end_held(connection: sa.Connection, token: str, ending: Ending, now: float) -> bool:
    """End the lease of a token inside a transaction; False if it was lost."""
    return _update_held(connection, token, {**_NO_LEASE, **ending.as_columns(), "finished_at": now})


def _update_held(connection: sa.Connection, token: str, values: Mapping[str, Any]) -> bool:
    """Update the row that a token holds; False if the lease was lost."""
    held = artifacts.update().where(artifacts.c.lease_token == token, IN_PROGRESS)
    return connection.execute(held.values(**values)).rowcount == 1


def _update_each(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Update locked rows; each has its number and the same columns."""
    if rows:
        changed: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in rows[0] if name != "seq"}
        update = artifacts.update().where(artifacts.c.seq == sa.bindparam("new_seq")).values(**changed)
        connection.execute(update, [{f"new_{name}": row[name] for name in row} for row in rows])
