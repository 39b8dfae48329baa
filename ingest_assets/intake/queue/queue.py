"""The queue of what to acquire: leases with fencing tokens, bounded attempts, caps over all processes.

States: `queued → in_progress → done | skipped | error`. A lease is lost when another call of `lease` has
taken it back after its time; from then on its token changes nothing. Times are the callers' clocks: machines
must agree on the time to well within a lease's length.
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
from ingest_assets.intake.queue.lease_order import IN_PROGRESS, QUEUED, Room, choose
from ingest_assets.intake.schema import artifacts
from ingest_assets.settings.intake import QueueOptions

MAX_WAIT_SECONDS = 86_400.0  # a server that asks for more is asked again after a day
_ROWS_PER_TRANSACTION = 1000
_NO_LEASE: Mapping[str, Any] = {"lease_token": None, "leased_by": None, "lease_expires": None}
_IN_ERROR = artifacts.c.state == sa.literal_column("'error'")


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


def read_artifacts(
    connection: sa.Connection, wanted: Filter, limit: int | None = None, after_seq: int = 0
) -> list[Artifact]:
    """Artifacts in the order they came in; `after_seq` is the last one of the page before."""
    query = sa.select(*COLUMNS).where(*wanted.conditions(), artifacts.c.seq > after_seq)
    rows = connection.execute(query.order_by(artifacts.c.seq).limit(limit)).mappings()
    return [Artifact.of(row) for row in rows]


def _in_progress_by(connection: sa.Connection, column: sa.Column[str]) -> dict[str, int]:
    query = sa.select(column, sa.func.count()).where(IN_PROGRESS, column != "").group_by(column)
    return {row[0]: row[1] for row in connection.execute(query.order_by(column))}


def _count(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> int:
    return connection.scalar(sa.select(sa.func.count()).select_from(artifacts).where(*conditions)) or 0


@dataclass(slots=True)
class Enqueued:
    """Ids that are new and ids that were known, each in the order given."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


class Queue:
    """Every call is one transaction; any number of processes may make them at the same time."""

    def __init__(
        self,
        database: Database,
        options: QueueOptions,
        rng: random.Random | None = None,
    ) -> None:
        self.database = database
        self._options = options
        self._rng = rng or random.Random()

    def enqueue(self, given: Iterable[NewArtifact], now: float) -> Enqueued:
        """Add what is not known yet; a known id keeps everything it has.

        Lazy input is read lazily and stored a thousand at a time: an import that is killed can be repeated.
        """
        report, waiting = Enqueued(), iter(given)
        while some := list(islice(waiting, _ROWS_PER_TRANSACTION)):
            with self.database.begin("enqueue") as connection:
                is_one = artifacts.c.artifact_id.in_([artifact.artifact_id for artifact in some])
                known = set(connection.scalars(sa.select(artifacts.c.artifact_id).where(is_one)))
                fresh: dict[str, dict[str, Any]] = {}
                for artifact in some:
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
        """Hand out at most so many artifacts, of one batch if it is given, and count the attempt.

        Who counts the leases there are is alone with that until its own are counted, so the caps hold.
        """
        ttl_s = self._options.lease_ttl_seconds if ttl_s is None else ttl_s
        with self.database.begin("lease") as connection:
            self._take_back_expired(connection, now)
            room = Room.now(connection, self._options)
            chosen = choose(connection, room, limit, now, batch) if limit > 0 else []
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

    def _take_back_expired(self, connection: sa.Connection, now: float) -> None:
        """Back into the line, behind those who wait; at the last attempt into `error`."""
        updates = []
        for row in _locked(connection, IN_PROGRESS, artifacts.c.lease_expires <= now):
            attempts, allowed = row["attempts"], self._allowed(row)
            who = f"{row['artifact_id']}: its worker {row['leased_by']}"
            what = f"{who} fell silent at attempt {attempts} of {allowed}"
            if attempts < allowed:
                failure = Failure("runtime", "E_LEASE_EXPIRED", f"{what}; it is tried again.", retryable=True)
                ending: dict[str, Any] = {"state": "queued", "finished_at": None}
            else:
                text = f"{what}; find out what kills its workers, then retry it."
                failure = Failure("runtime", "E_ATTEMPTS_EXHAUSTED", text, retryable=False)
                ending = {"state": "error", "finished_at": now}
            place = {"seq": row["seq"], "not_before": now}
            updates.append({**place, **_NO_LEASE, **ending, **failure.as_columns()})
        _update_each(connection, updates)

    def workers(self) -> set[str]:
        """Who has leases."""
        with self.database.connect() as connection:
            return set(connection.scalars(sa.select(artifacts.c.leased_by).where(IN_PROGRESS).distinct()))

    def expire(self, worker: str, now: float) -> int:
        """End the leases of a worker that is known to be dead, as their time would; says how many."""
        held = artifacts.update().where(IN_PROGRESS, artifacts.c.leased_by == worker)
        with self.database.begin() as connection:
            return connection.execute(held.values(lease_expires=now)).rowcount

    def _allowed(self, row: sa.RowMapping) -> int:
        return int(row["max_attempts"] or self._options.max_job_attempts)

    def heartbeat(self, token: str, now: float, ttl_s: float | None = None) -> bool:
        """Hold a lease for its whole length again; False when it is lost."""
        ttl_s = self._options.lease_ttl_seconds if ttl_s is None else ttl_s
        with self.database.begin() as connection:
            return _update_held(connection, token, {"lease_expires": now + ttl_s})

    def fail_and_retry(
        self, token: str, failure: Failure, now: float, retry_after_s: float | None = None
    ) -> bool:
        """Put a failed artifact back into the line for later; False when the lease was lost.

        It ends in `error` instead when the failure is not retryable or this was the last attempt. A wait that
        the server asked for stands for the backoff, up to a day.
        """
        with self.database.begin() as connection:
            # Waits, unlike the others: who changes this row may be our own heartbeat.
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
        """Give back what was not tried, after all, and do not count the attempt; False when it was lost.

        For workers that are told to stop, and for hosts that rest.
        """
        values = {**_NO_LEASE, "state": "queued", "not_before": now + min(max(0.0, wait_s), MAX_WAIT_SECONDS)}
        with self.database.begin() as connection:
            return _update_held(connection, token, {**values, "attempts": artifacts.c.attempts - 1})

    def retry_failed(
        self, now: float, wanted: Filter | None = None, *, reset_attempts: bool = False, dry_run: bool = False
    ) -> Retried:
        """Queue failed artifacts again, and let their batches run; a dry run only counts them.

        Who keeps the attempts has one more. The last error stays until the next ending.
        """
        attempts = {"attempts": 0} if reset_attempts else {}
        return self._requeue(wanted, _IN_ERROR, now, attempts, dry_run=dry_run)

    def refresh(self, now: float, wanted: Filter | None = None, *, older_than_s: float = 0.0) -> Retried:
        """Queue what was acquired so long ago again, to see whether it changed.

        Documents stay as they are until it is known what became of them.
        """
        is_old = artifacts.c.finished_at <= now - older_than_s
        is_acquired = artifacts.c.state.in_(("done", "skipped")) & is_old
        return self._requeue(wanted, is_acquired, now, {"attempts": 0})

    def _requeue(
        self,
        wanted: Filter | None,
        condition: sa.ColumnElement[bool],
        now: float,
        attempts: Mapping[str, int],
        *,
        dry_run: bool = False,
    ) -> Retried:
        conditions = (*(wanted or Filter()).conditions(), condition)
        with self.database.connect() if dry_run else self.database.begin("ledger") as connection:
            keys = connection.scalars(sa.select(artifacts.c.batch).where(*conditions).distinct())
            batches = {key for key in keys if key is not None}
            found = Retried(_count(connection, *conditions), batches)
            if not dry_run:
                values = {"state": "queued", "not_before": now, "finished_at": None, **attempts}
                connection.execute(artifacts.update().where(*conditions).values(**values))
                bump(connection, batches)
        return found

    def due(self, batch: str, before: float) -> int:
        """How many artifacts of a batch can be leased before a time, as far as the caps allow."""
        return self.due_batches(before, batch).get(batch, (0, 0.0))[0]

    def due_batches(self, before: float, batch: str | None = None) -> dict[str, tuple[int, float]]:
        """Batches with such artifacts: how many, and since when the first has been due."""
        since = sa.case((QUEUED, artifacts.c.not_before), else_=artifacts.c.lease_expires)
        is_due = (QUEUED & (artifacts.c.not_before <= before)) | (
            IN_PROGRESS & (artifacts.c.lease_expires <= before)
        )
        is_wanted = artifacts.c.batch.is_not(None) if batch is None else artifacts.c.batch == batch
        query = sa.select(artifacts.c.batch, sa.func.count(), sa.func.min(since)).where(is_due, is_wanted)
        with self.database.connect() as connection:
            rows = connection.execute(query.group_by(artifacts.c.batch))
            return {key: (count, first) for key, count, first in rows}

    def stats(self, now: float) -> QueueStats:
        """The queue in figures, as of now."""
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
        """Of all bytes that an artifact has."""
        column = artifacts.c.content_hash
        with self.database.connect() as connection:
            return set(connection.scalars(sa.select(column).where(column.is_not(None))))

    def get(self, artifact_id: str) -> Artifact | None:
        """One artifact by id."""
        return next(iter(self.find(Filter(artifact_ids=[artifact_id]))), None)

    def find(self, wanted: Filter, limit: int | None = None, after_seq: int = 0) -> list[Artifact]:
        """Artifacts in the order they came in; `after_seq` is the last one of the page before."""
        with self.database.connect() as connection:
            return read_artifacts(connection, wanted, limit, after_seq)

    def failures(self, wanted: Filter | None = None, limit: int | None = None) -> list[Artifact]:
        """Those that ended in `error`, each with its last one."""
        return self.find(replace(wanted or Filter(), state="error"), limit)


def _locked(
    connection: sa.Connection, *conditions: sa.ColumnElement[bool], waits: bool = False
) -> Sequence[sa.RowMapping]:
    """Rows for us to change, in the order of the line; those that somebody is changing now are left out.

    SQLite has no locks on rows and needs none: there is one writer.
    """
    query = sa.select(*COLUMNS).where(*conditions).order_by(artifacts.c.not_before, artifacts.c.seq)
    return connection.execute(query.with_for_update(skip_locked=not waits)).mappings().all()


def end_held(connection: sa.Connection, token: str, ending: Ending, now: float) -> bool:
    """End the lease of a token inside a transaction; False when it was lost."""
    return _update_held(connection, token, {**_NO_LEASE, **ending.as_columns(), "finished_at": now})


def _update_held(connection: sa.Connection, token: str, values: Mapping[str, Any]) -> bool:
    """Change the row that a token holds; a lost token holds none."""
    held = artifacts.update().where(artifacts.c.lease_token == token, IN_PROGRESS)
    return connection.execute(held.values(**values)).rowcount == 1


def _update_each(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Change rows that were locked before; each names its number and the same columns."""
    if rows:
        changed: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in rows[0] if name != "seq"}
        update = artifacts.update().where(artifacts.c.seq == sa.bindparam("new_seq")).values(**changed)
        connection.execute(update, [{f"new_{name}": row[name] for name in row} for row in rows])
