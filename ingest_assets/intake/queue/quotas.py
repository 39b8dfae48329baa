"""Request quotas per API, stored in the ledger and shared by all processes."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from ingest_assets.intake.database import Database
from ingest_assets.intake.schema import quotas
from ingest_assets.settings.intake import QuotaOptions


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """Requests to an API, and waits for its quota."""

    consumed: int
    throttled: int


class Quotas:
    """A token bucket per API in the ledger's database, so that it survives restarts."""

    def __init__(self, database: Database, options: Mapping[str, QuotaOptions]) -> None:
        self._database = database
        self._options = dict(options)

    def take(self, api: str, now: float) -> float:
        """Take a token and return 0; if there is none, return the seconds until there is.

        An API without a quota always has a token. A bucket starts full; a clock set back refills nothing.
        """
        options = self._options.get(api)
        if options is None:
            return 0.0
        with self._database.begin() as connection:
            row = self._locked(connection, api, options, now)
            per_second = options.rate / options.per_seconds
            filled = row.tokens + max(0.0, now - row.filled_at) * per_second
            tokens = min(float(options.rate), filled)
            is_free = tokens >= 1.0 - 1e-9  # after an exact wait, a rounding error must not matter
            values = {"tokens": tokens - is_free, "filled_at": max(now, row.filled_at)}
            counts = {"consumed": row.consumed + is_free, "throttled": row.throttled + (not is_free)}
            connection.execute(quotas.update().where(quotas.c.api == api).values(**values, **counts))
        return 0.0 if is_free else (1.0 - tokens) / per_second

    def use(self) -> dict[str, QuotaUse]:
        """Return the counts by API since the ledger was created."""
        with self._database.connect() as connection:
            rows = connection.execute(sa.select(quotas).order_by(quotas.c.api)).all()
        return {row.api: QuotaUse(row.consumed, row.throttled) for row in rows}

    def _locked(self, connection: sa.Connection, api: str, options: QuotaOptions, now: float) -> sa.Row:
        """Return the bucket, locked until the transaction ends; create it if it is missing."""
        query = sa.select(quotas).where(quotas.c.api == api).with_for_update()
        if (row := connection.execute(query).first()) is not None:
            return row
        full = {"api": api, "tokens": options.rate, "filled_at": now, "consumed": 0, "throttled": 0}
        insert = self._database.insert(quotas).values(**full)
        connection.execute(insert.on_conflict_do_nothing(index_elements=["api"]))
        return connection.execute(query).one()
