"""`ingest inspect`: everything the tables hold about one document."""

from pathlib import Path
from typing import Any

import polars as pl

from ingest_assets.cli.output import print_json, say
from ingest_assets.defs.home import Home, open_home
from ingest_assets.intake.artifacts import Artifact
from ingest_assets.intake.ledger import Document
from ingest_assets.model.errors import ConfigError
from ingest_assets.storage.tables import Table


def show_document(home: Path | None, document: str, chunks: int, *, as_json: bool) -> None:
    """Print what is known of one document, for people or programs."""
    here = open_home(home, only_looks=True)
    result = inspect_object(here, find(here, document.strip()), chunks)
    if as_json:
        print_json(result)
    else:
        _print(result)


def find(home: Home, wanted: str) -> Document:
    """The document with that id, or the only one whose id ends so."""
    exact = home.ledger.document(wanted)
    if exact is None or exact.is_deleted():
        artifact = home.queue.get(wanted)
        if artifact is not None:
            raise ConfigError(_no_document(artifact))
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


def _no_document(artifact: Artifact) -> str:
    """Why a queued artifact is no document."""
    if artifact.duplicate_of is not None:
        other = artifact.duplicate_of
        return f"{artifact.artifact_id} was skipped, as its bytes are those of {other}; inspect that one."
    why = f": {artifact.last_error.message}" if artifact.last_error else ""
    return f"{artifact.artifact_id} is {artifact.state.replace('_', ' ')}{why or '; it is not acquired yet.'}"


def inspect_object(home: Home, document: Document, chunks: int) -> dict[str, Any]:
    """What is known of one document, as one object."""
    tables = {stage: _rows(home, stage, document) for stage in home.graph}
    errors = {stage: _error(home, stage, document) for stage in home.graph}
    doctags = tables["doctags"].drop("doctags", "document", strict=False).to_dicts()
    judged = tables["admission"].drop("signature", strict=False).to_dicts()
    shown = tables["chunks"].head(chunks).to_dicts()
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
        "errors": {stage: error for stage, error in errors.items() if error},
        "chunks": shown,
    }


def _rows(home: Home, stage: str, document: Document) -> pl.DataFrame:
    path = home.layout.table(home.serving(stage), document.batch)
    if not path.is_file():
        return pl.DataFrame()
    return Table(stage, (path,)).read(lambda rows: rows.filter(pl.col("doc_id") == document.doc_id))


def _error(home: Home, stage: str, document: Document) -> str | None:
    table = Table(stage, (home.layout.table(home.asset(stage), document.batch),))
    failure = table.failures.get(document.doc_id)
    return f"{failure.error.code}: {failure.error.message}" if failure else None


def _verdict(row: dict[str, Any]) -> str:
    """What admission said, in words."""
    if row["admitted"]:
        why = f" ({', '.join(row['tier_reasons'])})" if row["tier_reasons"] else ""
        return f"admitted as {row['tier']}{why}"
    other = row["duplicate_of"] or row["near_duplicate_of"]
    if other is not None:
        near = "" if row["duplicate_of"] else f", similarity {row['similarity']:.2f}"
        return f"rejected at {row['reject_mark']}: {row['reject_reason']} of {other}{near}"
    figures = f"{row['reject_figure']:g} against {row['reject_limit']:g}"
    return f"rejected at {row['reject_mark']}: {row['reject_reason']} ({figures})"


def _print(result: dict[str, Any]) -> None:
    say(f"{result['doc_id']}  (batch {result['batch']}, number {result['seq']})")
    if result["deleted"]:
        waits = any(result["rows"].values())
        say("  deleted" + ("; its rows leave the tables with the next run" if waits else ""))
    if (row := result["documents"]) is not None:
        say(f"  {row['mime']}, {row['size_bytes']} bytes, sha256 {row['content_hash'][:16]}…")
        say(f"  {row['uri']}")
    if (row := result["doctags"]) is not None:
        say(f"  read by {row['parser']}: {row['pages']} pages, {row['texts']} texts, {row['tables']} tables, "
            f"{row['pictures']} pictures, {row['chars']} characters")  # fmt: skip
        say(f"  title: {row['title'] or '-'}")
        for warning in row["warnings"]:
            say(f"  warning: {warning}")
    if (row := result["admission"]) is not None:
        say(f"  {_verdict(row)}")
        parts = ", ".join(f"{name} {value:g}" for name, value in row["quality_parts"].items())
        language = f"{row['language']} ({row['language_score']:.2f})"
        say(f"  {language}, {row['chars']} characters ({row['size_class']}), entropy {row['entropy']:g}, "
            f"quality {row['quality']:g} ({parts})")  # fmt: skip
    say("  rows: " + ", ".join(f"{stage} {count}" for stage, count in result["rows"].items()))
    for stage, error in result["errors"].items():
        say(f"  failed in {stage}: {error}")
    for chunk in result["chunks"]:
        pages = f", pages {chunk['pages']}" if chunk["pages"] else ""
        say(f"\n  chunk {chunk['ordinal']} ({chunk['tokens']} tokens{pages}) {' > '.join(chunk['headings'])}")
        say(f"    {' '.join(chunk['text'].split())[:300]}")
