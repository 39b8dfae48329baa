"""What the tables of a home hold: the numbers that commands print and `--json` gives."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home
from ingest_assets.intake.scan import ScanReport
from ingest_assets.model.errors import StageError
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


def failures(home: Home, of_this_run: Sequence[StageError] = ()) -> list[dict[str, Any]]:
    """Every document that could not be done: as the tables say, and what failed now beside an older row."""
    stored = [failure.error for stage in GRAPH for failure in home.tables(stage).failures.values()]
    known = {(error.stage, error.item_id) for error in stored}
    fresh = [error for error in of_this_run if (error.stage, error.item_id) not in known]
    return [
        {
            "doc_id": error.item_id,
            "stage": error.stage,
            "code": error.code,
            "category": error.category,
            "message": error.message,
            "retryable": error.retryable,
        }
        for error in [*stored, *fresh]
    ]


def failure_line(failure: dict[str, Any]) -> str:
    """A failure for a person."""
    return f"failed: {failure['doc_id']} [{failure['stage']} {failure['code']}] {failure['message']}"


def scan_object(scan: ScanReport) -> dict[str, Any]:
    """What a scan found, for people and programs alike."""
    names = ("new", "changed", "moved", "deleted", "restored", "unchanged")
    return {
        "scan": {name: getattr(scan, name) for name in names},
        "problems": [{"source": s, "path": p.path, "reason": p.reason} for s, p in scan.problems],
    }


def scan_line(scan: dict[str, int]) -> str:
    """What a scan found, for a person."""
    return (
        f"Folders: {scan['new']} new, {scan['changed']} changed, {scan['moved']} moved, "
        f"{scan['deleted']} deleted, {scan['restored']} back again, {scan['unchanged']} unchanged files."
    )


def problem_line(problem: dict[str, Any]) -> str:
    """A file that was not taken in, for a person."""
    return f"not taken in: {problem['source']}: {problem['path']}: {problem['reason']}."


def table_folders(home: Home) -> dict[str, str]:
    """Where each asset's Parquet files are."""
    return {home.asset(stage): str(home.layout.asset_folder(home.asset(stage))) for stage in GRAPH}
