"""The numbers of a home's tables, printed by commands and contained in `--json`."""

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
    """Return the documents, pages, chunks and vectors in the tables of all batches."""
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


def rejections(home: Home) -> dict[str, int]:
    """Return how many documents admission rejected, by check and reason."""
    return dict(Verdicts.in_table(home.tables("admission")).reasons.most_common())


def _rows(table: Table) -> int:
    return sum(record.rows for record in table.records.values())


def failures(home: Home, of_this_run: Sequence[StageError] = ()) -> list[dict[str, Any]]:
    """Return the failures of the inbox, and those of this run that are not in a table yet."""
    stored = [failure.error for failure in read_inbox(home)]
    known = {(error.stage, error.item_id) for error in stored}
    fresh = [error for error in of_this_run if (error.stage, error.item_id) not in known]
    names = ("stage", "code", "category", "message", "retryable")
    return [
        {"doc_id": error.item_id, **{name: getattr(error, name) for name in names}}
        for error in [*stored, *fresh]
    ]


def scan_object(scan: ScanReport) -> dict[str, Any]:
    """Return the counts and problems of a scan as a JSON object."""
    names = ("new", "changed", "moved", "deleted", "restored", "unchanged")
    return {
        "scan": {name: getattr(scan, name) for name in names},
        "problems": [{"source": s, "path": p.path, "reason": p.reason} for s, p in scan.problems],
    }


def require_writable(output: Path | None) -> None:
    """Raise `ConfigError` if the report cannot be written, before anything is measured."""
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise ConfigError(f"--output {output}: is a folder, or its folder does not exist; set a file.")


def write_report(output: Path, report: dict[str, Any]) -> None:
    """Write the report atomically as JSON."""
    with replacing(output.absolute()) as scratch:
        scratch.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
