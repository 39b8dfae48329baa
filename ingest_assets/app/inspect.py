"""Everything the tables hold about one document."""

from typing import Any

import polars as pl

from ingest_assets.app.home import Home
from ingest_assets.core.errors import ConfigError
from ingest_assets.intake.ledger import Document
from ingest_assets.storage.table import Table


def find(home: Home, wanted: str) -> Document:
    """The document with that id, or the only one whose id ends so."""
    exact = home.ledger.document(wanted)
    if exact is None or exact.is_deleted():
        artifact = home.queue.get(wanted)
        if artifact is not None and (other := artifact.duplicate_of) is not None:
            raise ConfigError(f"{wanted} was skipped, as its bytes are those of {other}; inspect that one.")
        if artifact is not None:
            last = artifact.last_error
            why = f": {last.message}" if last else "; it is not acquired yet."
            raise ConfigError(f"{wanted} is {artifact.state.replace('_', ' ')}{why}")
    if exact is not None:
        return exact
    ending = [document for document in home.ledger.documents() if document.doc_id.endswith(wanted)]
    if len(ending) == 1:
        return ending[0]
    if not ending:
        raise ConfigError(
            f"No document {wanted!r} in {home.layout.home}; `ingest status --documents` lists them."
        )
    first = ", ".join(document.doc_id for document in ending[:5])
    raise ConfigError(f"{len(ending)} documents end in {wanted!r}: {first}; give more of the id.")


def inspect_object(home: Home, document: Document, chunks: int) -> dict[str, Any]:
    """What is known of one document, as one object."""
    tables = {stage: _rows(home, stage, document) for stage in home.graph}
    errors = {}
    for stage in home.graph:
        table = Table(stage, (home.layout.table(home.asset(stage), document.batch),))
        if (failure := table.failures.get(document.doc_id)) is not None:
            errors[stage] = f"{failure.error.code}: {failure.error.message}"
    doctags = tables["doctags"].drop("doctags", "document", strict=False).to_dicts()
    judged = tables["admission"].drop("signature", strict=False).to_dicts()
    return {
        "doc_id": document.doc_id,
        "batch": document.batch,
        "seq": document.seq,
        "deleted": document.is_deleted(),
        "content_hash": document.content_hash,
        "documents": next(iter(tables["documents"].to_dicts()), None),
        "doctags": doctags[0] if doctags else None,
        "admission": judged[0] if judged else None,
        "rows": {stage: table.height for stage, table in tables.items()},
        "errors": errors,
        "chunks": tables["chunks"].head(chunks).to_dicts(),
    }


def _rows(home: Home, stage: str, document: Document) -> pl.DataFrame:
    path = home.layout.table(home.serving(stage), document.batch)
    if not path.is_file():
        return pl.DataFrame()
    return Table(stage, (path,)).read(lambda rows: rows.filter(pl.col("doc_id") == document.doc_id))
