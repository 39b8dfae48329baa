"""What the tables of a home hold: the numbers that commands print and `--json` gives."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ingest_assets.app.failures import read_inbox
from ingest_assets.app.home import Home
from ingest_assets.core.errors import ConfigError, StageError
from ingest_assets.intake.folders.scan import ScanReport
from ingest_assets.stages.admission.stage import Verdicts
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.table import Table


def corpus_numbers(home: Home) -> dict[str, int]:
    """Documents, pages, chunks and vectors over all batches, from the tables themselves."""
    doctags, verdicts = home.tables("doctags"), Verdicts.in_table(home.tables("admission"))
    pages = doctags.read(lambda rows: rows.select(pl.col("pages").sum())).item() if doctags.paths else 0
    return {
        "documents": _rows(home.tables("documents")),
        "converted": _rows(doctags),
        "pages": pages,
        "admitted": verdicts.admitted,
        "rejected": verdicts.rejected,
        "chunks": _rows(home.tables("chunks")),
        "vectors": _rows(home.tables("dense")),
        **({"sparse": _rows(home.tables("sparse"))} if "sparse" in home.graph else {}),
        "lexical": _rows(home.tables("lexical")),
    }


def _rows(table: Table) -> int:
    return sum(record.rows for record in table.records.values())


def failures(home: Home, of_this_run: Sequence[StageError] = ()) -> list[dict[str, Any]]:
    """Every document that could not be done: as the inbox says, and what failed now beside an older row."""
    stored = [failure.error for failure in read_inbox(home)]
    known = {(error.stage, error.item_id) for error in stored}
    fresh = [error for error in of_this_run if (error.stage, error.item_id) not in known]
    names = ("stage", "code", "category", "message", "retryable")
    return [
        {"doc_id": error.item_id, **{name: getattr(error, name) for name in names}}
        for error in [*stored, *fresh]
    ]


def scan_object(scan: ScanReport) -> dict[str, Any]:
    """What a scan found, for people and programs alike."""
    names = ("new", "changed", "moved", "deleted", "restored", "unchanged")
    return {
        "scan": {name: getattr(scan, name) for name in names},
        "problems": [{"source": s, "path": p.path, "reason": p.reason} for s, p in scan.problems],
    }


def require_place(output: Path | None) -> None:
    """Found out before anything is measured, not after."""
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise ConfigError(f"{output}: cannot be written; give a file in a folder that is there.")


def write_report(output: Path, report: dict[str, Any]) -> None:
    """Whole, or not at all."""
    with replacing(output.absolute()) as scratch:
        scratch.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
