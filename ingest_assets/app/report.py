"""What the tables of a home hold: the numbers that commands print and `--json` gives."""

import json
from collections.abc import Mapping, Sequence
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

# Lines of failures after a run, and documents named in a line that stands for several.
_FIRST = 20
_FIRST_ALIKE = 3


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


def vectors_in_words(numbers: Mapping[str, Any], *, with_lexical: bool) -> str:
    """How many vectors there are; the families are named where there is more than one to tell apart."""
    counted = {"dense": "vectors", "sparse": "sparse"} | ({"lexical": "lexical"} if with_lexical else {})
    told = [f"{numbers[name]} {family}" for family, name in counted.items() if name in numbers]
    if len(told) == 1:
        return f"{numbers['vectors']} vectors"
    return f"{', '.join(told[:-1])} and {told[-1]} vectors"


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


def failure_lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """Failures for a person: the first ones, those of one cause in one line, and where the others are."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for failure in found:
        alike.setdefault((failure["stage"], failure["code"], failure["message"]), []).append(
            failure["doc_id"]
        )
    lines, left = [], len(found)
    for (stage, code, message), docs in list(alike.items())[:_FIRST]:
        more = ", …" if len(docs) > _FIRST_ALIKE else ""
        several = f"{len(docs)} documents ({', '.join(docs[:_FIRST_ALIKE])}{more})"
        lines.append(f"failed: {docs[0] if len(docs) == 1 else several} [{stage} {code}] {message}")
        left -= len(docs)
    return [*lines, f"… and {left} more: ingest failures list"] if left else lines


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
    return {home.serving(stage): str(home.layout.asset_folder(home.serving(stage))) for stage in home.graph}


def require_place(output: Path | None) -> None:
    """Found out before anything is measured, not after."""
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise ConfigError(f"{output}: cannot be written; give a file in a folder that is there.")


def write_report(output: Path, report: dict[str, Any]) -> None:
    """Whole, or not at all."""
    with replacing(output.absolute()) as scratch:
        scratch.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
