"""Bounds on what runs now: how many at the same time in this process, how often over all of them."""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from ingest_assets.intake.database import Database
from ingest_assets.intake.schema import quotas
from ingest_assets.model.options import QuotaOptions


class KeyedLimiter:
    """So many at the same time per key, within this process; a key without a limit is not bounded.

    Limits are looked at whenever one asks: raised, those who wait go on at once; lowered, nobody is stopped,
    but nobody follows until enough have left.
    """

    def __init__(self, limits: Mapping[str, int] | None = None, default: int | None = None) -> None:
        self._limits: dict[str, int | None] = dict(limits or {})
        self._default = default
        self._held: Counter[str] = Counter()
        self._changed = threading.Condition()

    def acquire(self, key: str, timeout_s: float | None = None) -> bool:
        """Wait for a place; False when there was none in time (0 = do not wait)."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_place(key), timeout_s):
                return False
            self._held[key] += 1
            return True

    def _has_place(self, key: str) -> bool:
        limit = self._limits.get(key, self._default)
        return limit is None or self._held[key] < limit

    def release(self, key: str) -> None:
        """Leave a place; raises when nobody holds one."""
        with self._changed:
            if self._held[key] == 0:
                raise RuntimeError(f"{key!r} was released more often than acquired")
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]  # keys are hosts: there is no end of them
            self._changed.notify_all()

    @contextlib.contextmanager
    def holding(self, key: str) -> Iterator[None]:
        """Hold a place for the length of a block."""
        self.acquire(key)
        try:
            yield
        finally:
            self.release(key)

    def set_limit(self, key: str, limit: int | None) -> None:
        """Raise, lower or (with None) lift the limit of a key, also while others wait; 0 lets nobody in."""
        with self._changed:
            self._limits[key] = limit
            self._changed.notify_all()

    def held(self, key: str) -> int:
        """How many hold a place now."""
        with self._changed:
            return self._held[key]


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """How often an API was asked, and how often somebody had to wait for it."""

    consumed: int
    throttled: int


class Quotas:
    """A token bucket per API in the ledger's database: shared by all processes, and kept over restarts."""

    def __init__(self, database: Database, options: Mapping[str, QuotaOptions]) -> None:
        self._database = database
        self._options = dict(options)

    def take(self, api: str, now: float) -> float:
        """Take a token: 0 when there was one, else the seconds until there is, and nothing is taken.

        An API without a quota always has one. A bucket starts full; a clock that goes back refills nothing.
        """
        options = self._options.get(api)
        if options is None:
            return 0.0
        with self._database.begin() as connection:
            row = self._locked(connection, api, options, now)
            per_second = options.rate / options.per_seconds
            filled = row.tokens + max(0.0, now - row.filled_at) * per_second
            tokens = min(float(options.rate), filled)
            is_there = tokens >= 1.0 - 1e-9  # what was waited for exactly must not fail by a rounding error
            values = {"tokens": tokens - is_there, "filled_at": max(now, row.filled_at)}
            count = {"consumed": row.consumed + is_there, "throttled": row.throttled + (not is_there)}
            connection.execute(quotas.update().where(quotas.c.api == api).values(**values, **count))
        return 0.0 if is_there else (1.0 - tokens) / per_second

    def use(self) -> dict[str, QuotaUse]:
        """Counters since the ledger began, by API."""
        with self._database.connect() as connection:
            rows = connection.execute(sa.select(quotas).order_by(quotas.c.api)).all()
        return {row.api: QuotaUse(row.consumed, row.throttled) for row in rows}

    def _locked(self, connection: sa.Connection, api: str, options: QuotaOptions, now: float) -> sa.Row:
        """The bucket, ours until the end of the transaction; the first to ask makes it."""
        query = sa.select(quotas).where(quotas.c.api == api).with_for_update()
        if (row := connection.execute(query).first()) is not None:
            return row
        full = {"api": api, "tokens": options.rate, "filled_at": now, "consumed": 0, "throttled": 0}
        insert = self._database.insert(quotas).values(**full)
        connection.execute(insert.on_conflict_do_nothing(index_elements=["api"]))
        return connection.execute(query).one()
