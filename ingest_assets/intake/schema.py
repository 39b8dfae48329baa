"""The ledger's tables, versioned so that later releases can upgrade them in place."""

from collections.abc import Callable, Mapping

import sqlalchemy as sa

from ingest_assets.core.errors import IngestError

# 1: watched folders. 2: the queue and its quotas. 3: acquired documents, counters and duplicate claims.
LEDGER_VERSION = 3

metadata = sa.MetaData()

meta = sa.Table(
    "meta",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("value", sa.String(256), nullable=False),
)

sources = sa.Table(
    "sources",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("origin", sa.String(16), nullable=False),
    sa.Column("first_seen", sa.Float, nullable=False),
)

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("doc_id", sa.Text, primary_key=True),
    sa.Column("source", sa.String(64), nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("content_hash", sa.String(64), nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("mtime_ns", sa.BigInteger, nullable=False),
    sa.Column("batch", sa.String(32), nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False, unique=True),
    sa.Column("first_seen", sa.Float, nullable=False),
    sa.Column("last_seen", sa.Float, nullable=False),
    sa.Column("deleted_at", sa.Float),
    sa.Column("resolver", sa.String(64)),
    sa.Index("documents_by_batch", "batch", "seq"),
    sa.Index("documents_by_source", "source"),
    sa.Index("documents_by_content", "content_hash"),
)

batches = sa.Table(
    "batches",
    metadata,
    sa.Column("key", sa.String(32), primary_key=True),
    sa.Column("revision", sa.BigInteger, nullable=False, index=True),
    sa.Column("complete_mark", sa.String(64)),
)

scan_problems = sa.Table(
    "scan_problems",
    metadata,
    sa.Column("source", sa.String(64), primary_key=True),
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
)


# SQLite numbers rows automatically only in a column of type INTEGER.
_Number = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _partial_index(name: str, condition: str, *columns: str) -> sa.Index:
    """Return a partial index, whose size follows the rows that meet the condition, not the table's."""
    return sa.Index(name, *columns, sqlite_where=sa.text(condition), postgresql_where=sa.text(condition))


artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("seq", _Number, primary_key=True, autoincrement=True),
    sa.Column("artifact_id", sa.Text, nullable=False, unique=True),
    sa.Column("url", sa.Text),
    sa.Column("path", sa.Text),
    sa.Column("resolver", sa.String(64), nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("lane", sa.Text, sa.Computed("resolver || ' ' || host", persisted=True)),
    sa.Column("meta", sa.Text, nullable=False),
    sa.Column("batch", sa.String(32)),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("max_attempts", sa.Integer),
    sa.Column("not_before", sa.Float, nullable=False),
    sa.Column("lease_token", sa.String(64), unique=True),
    sa.Column("leased_by", sa.Text),
    sa.Column("leased_at", sa.Float),
    sa.Column("lease_expires", sa.Float),
    sa.Column("last_error", sa.Text),
    sa.Column("error_category", sa.String(16)),
    sa.Column("duplicate_of", sa.Text),
    sa.Column("detail", sa.Text),
    sa.Column("content_hash", sa.String(64)),
    sa.Column("etag", sa.Text),
    sa.Column("last_modified", sa.Text),
    sa.Column("enqueued_at", sa.Float, nullable=False),
    sa.Column("finished_at", sa.Float),
    sa.Column("doc_seq", sa.BigInteger),
    sa.Column("size_bytes", sa.BigInteger),
    sa.Column("mime", sa.Text),
    _partial_index("artifacts_in_line", "state = 'queued'", "not_before", "seq"),
    _partial_index("artifacts_by_lane", "state = 'queued'", "lane", "not_before", "seq"),
    _partial_index("artifacts_leased", "state = 'in_progress'", "lease_expires"),
    _partial_index("artifacts_failed", "state = 'error'", "seq"),
    _partial_index("artifacts_without_batch", "batch IS NULL", "seq"),
    sa.Index("artifacts_by_batch", "batch", "seq"),
    sa.Index("artifacts_by_document", "doc_seq", unique=True),
    _partial_index("artifacts_by_content", "content_hash IS NOT NULL", "content_hash"),
    # A number is never reused, even if the row with the highest one is deleted.
    sqlite_autoincrement=True,
)

quotas = sa.Table(
    "quotas",
    metadata,
    sa.Column("api", sa.String(64), primary_key=True),
    sa.Column("tokens", sa.Float, nullable=False),
    sa.Column("filled_at", sa.Float, nullable=False),
    sa.Column("consumed", sa.BigInteger, nullable=False),
    sa.Column("throttled", sa.BigInteger, nullable=False),
)

counters = sa.Table(
    "counters",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.Float, nullable=False),
)

# The text hash of each document that admission has checked, and its near duplicate; the lowest `seq` wins.
claims = sa.Table(
    "claims",
    metadata,
    sa.Column("doc_id", sa.Text, primary_key=True),
    sa.Column("batch", sa.String(32), nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("basis", sa.String(64), nullable=False),
    sa.Column("text_hash", sa.String(64)),
    sa.Column("is_eligible", sa.Boolean, nullable=False),
    sa.Column("signature", sa.LargeBinary),
    sa.Column("near_of", sa.Text),
    sa.Column("similarity", sa.Float),
    sa.Index("claims_by_text", "text_hash", "seq"),
    sa.Index("claims_by_batch", "batch"),
)

# Documents that may be similar share a band of their signatures.
bands = sa.Table(
    "bands",
    metadata,
    sa.Column("band", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("doc_id", sa.Text, primary_key=True),
    sa.Index("bands_by_document", "doc_id"),
)


def version_of(connection: sa.Connection) -> int | None:
    """Return the stored version, or None if there is no ledger yet."""
    if not sa.inspect(connection).has_table(meta.name):
        return None
    stored = connection.scalar(sa.select(meta.c.value).where(meta.c.key == "ledger_version"))
    return None if stored is None else int(stored)


def prepare(connection: sa.Connection, where: str) -> None:
    """Create the tables, or upgrade them to this release; call it in a transaction with the write lock.

    Reads the version again: another process may have done the upgrade while this one waited for the lock.
    """
    version = version_of(connection)
    require_known(version, where)
    if version is None:
        metadata.create_all(connection)
        connection.execute(meta.insert().values(key="ledger_version", value=str(LEDGER_VERSION)))
        return
    for step in range(version, LEDGER_VERSION):
        _UPGRADES[step](connection)
    row = meta.c.key == "ledger_version"
    connection.execute(meta.update().where(row).values(value=str(LEDGER_VERSION)))


def require_known(version: int | None, where: str) -> None:
    """Raise `IngestError` for a version that this release cannot read."""
    if version is not None and version not in (*_UPGRADES, LEDGER_VERSION):
        raise IngestError(
            f"The ledger {where} has schema version {version}; this release supports {LEDGER_VERSION}. "
            "Use the release that created it."
        )


def _add_queue(connection: sa.Connection) -> None:
    """Upgrade to version 2: create the queue and the quotas, with the columns of version 3."""
    metadata.create_all(connection, tables=[artifacts, quotas])


def _add_acquisition(connection: sa.Connection) -> None:
    """Upgrade to version 3: acquired documents, duplicate claims and counters.

    Version 2 acquired nothing, so its artifacts get their batches again, now with document numbers.
    """
    metadata.create_all(connection, tables=[counters, claims, bands])
    for table, names in ((documents, ("resolver",)), (artifacts, ("doc_seq", "size_bytes", "mime"))):
        existing = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
        for name in names:
            if name not in existing:
                kind = table.c[name].type.compile(connection.dialect)
                connection.execute(sa.DDL(f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}"))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            index.create(connection, checkfirst=True)
    connection.execute(artifacts.update().where(artifacts.c.doc_seq.is_(None)).values(batch=None))


_UPGRADES: Mapping[int, Callable[[sa.Connection], None]] = {1: _add_queue, 2: _add_acquisition}
