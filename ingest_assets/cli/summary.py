"""What the tables of a home hold: the numbers that commands print and `--json` gives."""

from typing import Any

import polars as pl

from ingest_assets.defs.home import UPSTREAM, Home
from ingest_assets.storage.tables import Table


def corpus_numbers(home: Home) -> dict[str, int]:
    """Documents, pages, chunks and vectors over all batches, from the tables themselves."""
    doctags = home.tables("doctags")
    pages = int(doctags.scan().select(pl.col("pages").sum()).collect().item() or 0) if doctags.paths else 0
    return {
        "documents": _rows(home.tables("documents")),
        "converted": _rows(doctags),
        "pages": pages,
        "chunks": _rows(home.tables("chunks")),
        "vectors": _rows(home.tables("dense")),
        "lexical": _rows(home.tables("lexical")),
    }


def _rows(table: Table) -> int:
    return sum(record.rows for record in table.records.values())


def failures(home: Home) -> list[dict[str, Any]]:
    """Every document that could not be done, with the stage, the code and the reason."""
    found = []
    for stage in UPSTREAM:
        for item, failure in home.tables(stage).failures.items():
            error = failure.error
            found.append(
                {
                    "doc_id": item,
                    "stage": stage,
                    "code": error.code,
                    "category": error.category,
                    "message": error.message,
                    "retryable": error.retryable,
                }
            )
    return found


def table_folders(home: Home) -> dict[str, str]:
    """Where each asset's Parquet files are."""
    return {home.asset(stage): str(home.layout.asset_folder(home.asset(stage))) for stage in UPSTREAM}
