"""The ledger's tables, versioned so that a later release can upgrade them in place."""

import sqlalchemy as sa

from ingest_assets.model.errors import IngestError

LEDGER_VERSION = 1

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
    sa.Index("documents_by_batch", "batch", "seq"),
    sa.Index("documents_by_source", "source"),
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


def version_of(connection: sa.Connection) -> int | None:
    """The stored version, or None where there is no ledger yet."""
    if not sa.inspect(connection).has_table(meta.name):
        return None
    stored = connection.scalar(sa.select(meta.c.value).where(meta.c.key == "ledger_version"))
    return None if stored is None else int(stored)


def prepare(connection: sa.Connection) -> None:
    """Make the tables on first use; call it in a transaction that holds the write lock."""
    metadata.create_all(connection)
    if version_of(connection) is None:
        connection.execute(meta.insert().values(key="ledger_version", value=str(LEDGER_VERSION)))


def require_known(version: int | None, where: str) -> None:
    """Refuse a ledger of a version this code does not know."""
    if version is not None and version != LEDGER_VERSION:
        raise IngestError(
            f"The ledger {where} has schema version {version}; this release knows {LEDGER_VERSION}. "
            "Use the release that made it."
        )
