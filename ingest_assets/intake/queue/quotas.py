"""How often an API may be asked: quotas in the ledger, shared by all processes."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from ingest_assets.intake.database import Database
from ingest_assets.intake.schema import quotas
from ingest_assets.settings.intake import QuotaOptions


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
