"""Collect what the ledger and the tables store about one document."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ingest_assets.app.home import Home
from ingest_assets.core.errors import ConfigError
from ingest_assets.intake.ledger import Document
from ingest_assets.storage.table import Table

_MAX_SHOWN = 5  # ids in an error message


def find_document(home: Home, doc_id: str) -> Document:
    """Return the document with that id or absolute path, or the only one whose id ends with it."""
    doc_id = doc_id_of_path(home, doc_id)
    exact = home.ledger.document(doc_id)
    if exact is None or exact.is_deleted():
        artifact = home.queue.get(doc_id)
        if artifact is not None and (other := artifact.duplicate_of) is not None:
            raise ConfigError(
                f"{doc_id} was skipped: its bytes are the same as those of {other}. Inspect {other}."
            )
        if artifact is not None:
            last = artifact.last_error
            if artifact.state == "error" and last is not None:
                raise ConfigError(f"{doc_id} was not acquired: {last.message}")
            tried = f" Last error: {last.message}" if last else ""
            raise ConfigError(f"{doc_id} is queued and not acquired yet; run `ingest queue run`.{tried}")
    if exact is not None:
        return exact
    documents = {document.doc_id: document for document in home.ledger.documents()}
    matches = ids_ending_in(documents, doc_id)
    if len(matches) == 1:
        return documents[matches[0]]
    if not matches:
        similar = ids_ending_in({known.lower(): known for known in documents}, doc_id.lower())
        similar = [known for known in documents if known.lower() in similar]
        advice = (
            f"did you mean {first_few(similar)}?" if similar else "`ingest status --documents` lists them."
        )
        raise ConfigError(f"No document {doc_id!r} in {home.layout.home}; {advice}")
    raise ConfigError(
        f"{len(matches)} documents end in {doc_id!r}: {first_few(matches)}; give more of the id."
    )


def doc_id_of_path(home: Home, text: str) -> str:
    """Return the id of the file in a watched folder that an absolute path names; else the text itself."""
    path = Path(text)
    for source in home.ledger.sources() if path.is_absolute() else ():
        if path.is_relative_to(source.path):
            return f"{source.name}:{path.relative_to(source.path).as_posix()}"
    return text


def ids_ending_in(doc_ids: Iterable[str], text: str) -> list[str]:
    """Return the ids with this path in their source; else with this file name; else with this ending."""
    matches = [doc_id for doc_id in doc_ids if doc_id.endswith(text)]
    for separators in ((":",), (":", "/")):
        if complete := [doc_id for doc_id in matches if doc_id.removesuffix(text).endswith(separators)]:
            return complete
    return matches


def first_few(doc_ids: Sequence[str]) -> str:
    """Return the first ids in one line, and how many more there are."""
    more = f" and {len(doc_ids) - _MAX_SHOWN} more" if len(doc_ids) > _MAX_SHOWN else ""
    return f"{', '.join(doc_ids[:_MAX_SHOWN])}{more}"


def inspect_object(home: Home, document: Document, chunks: int) -> dict[str, Any]:
    """Return everything that is stored about one document as a JSON object."""
    tables = {stage: _rows(home, stage, document) for stage in home.graph}
    errors = {}
    for stage in home.graph:
        table = Table(stage, (home.layout.table(home.asset(stage), document.batch),))
        if (failure := table.failures.get(document.doc_id)) is not None:
            errors[stage] = f"{failure.error.code}: {failure.error.message}"
    doctags = tables["doctags"].drop("doctags", "document", strict=False).to_dicts()
    verdicts = tables["admission"].drop("signature", strict=False).to_dicts()
    return {
        "doc_id": document.doc_id,
        "batch": document.batch,
        "seq": document.seq,
        "deleted": document.is_deleted(),
        "content_hash": document.content_hash,
        "documents": next(iter(tables["documents"].to_dicts()), None),
        "doctags": doctags[0] if doctags else None,
        "admission": verdicts[0] if verdicts else None,
        "rows": {stage: table.height for stage, table in tables.items()},
        "errors": errors,
        "chunks": tables["chunks"].head(chunks).to_dicts(),
    }


def _rows(home: Home, stage: str, document: Document) -> pl.DataFrame:
    path = home.layout.table(home.serving_asset(stage), document.batch)
    if not path.is_file():
        return pl.DataFrame()
    return Table(stage, (path,)).read(lambda rows: rows.filter(pl.col("doc_id") == document.doc_id))
