"""`ingest validate`: check that every backend writes byte-equal tables."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from ingest_assets.app.execution import (
    ParityConditions,
    ParityRecord,
    current_conditions,
    write_record,
)
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.report import scan_object
from ingest_assets.app.validate import (
    Variant,
    VariantResult,
    choose_variants,
    lock_validation,
    require_folder,
    run_variants,
    scan_input,
)
from ingest_assets.cli.flags import ExperimentalFlag, HomeFlag, JsonFlag
from ingest_assets.cli.output import grid, print_json, problem_line, say, warn
from ingest_assets.cli.run import executing
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import code_version_on_disk
from ingest_assets.samples import samples_folder

InputFlag = Annotated[
    Path | None,
    typer.Option("--input", readable=False, help="Folder with documents (default: the samples)."),
]
OnlyFlag = Annotated[
    str | None,
    typer.Option("--only", help="Backends to compare with inline, as in threads,processes (default: all)."),
]
WorkersFlag = Annotated[
    str | None,
    typer.Option(
        "--workers",
        help="Numbers of workers to test (default: 1,2,4 and the configured one; on Ray 1,2).",
    ),
]


def validate(
    home_path: HomeFlag = None,
    input: InputFlag = None,
    only: OnlyFlag = None,
    workers: WorkersFlag = None,
    experimental: ExperimentalFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Run documents inline, on threads, processes and Ray, and check that all tables are byte-equal.

    Everything is computed once per backend and number of workers, in separate homes below state/parity;
    your tables are not changed. If all are equal, the result is recorded; features.require_parity needs
    this record.
    """
    home = open_home(home_path)
    conditions = current_conditions(home)  # also rejects settings that contradict each other
    folder = require_folder(input or samples_folder())
    variants = choose_variants(home, only, workers)
    with lock_validation(home):
        scan = scan_input(home, folder)
        if not scan.new:
            raise ConfigError(f"{folder}: contains no documents; choose a folder with documents.")
        problems = scan_object(scan)["problems"]
        if not as_json:
            _announce(home, folder, scan.new, variants, problems)
        progress = "bar" if sys.stderr.isatty() and not as_json else "log"
        run = partial(executing, progress=progress, with_settings=True)
        results = run_variants(home, variants, run, _progress_printer(len(variants), as_json))
        objection = _objection(results, conditions)
        _update_record(home, folder, conditions, results, objection)
    if as_json:
        print_json(_result_object(home, folder, conditions, results, objection) | {"problems": problems})
    else:
        _print_results(home, results, objection)
    return 0 if objection is None else 1


def _objection(results: Sequence[VariantResult], conditions: ParityConditions) -> str | None:
    """Return why the tables are not proved equal; None if they are."""
    compared = _compared(results)
    bad = [result for result in compared if not result.is_good()]
    if bad and bad[0] is results[0]:
        return "The inline run is not complete, so there is nothing to compare with; fix its errors."
    if bad:
        return f"{len(bad)} of {len(compared) - 1} runs differ from the inline run or are not complete."
    if not results[0].done:
        return "Every document failed, so nothing was compared; choose documents that can be read."
    if code_version_on_disk() != conditions.code_version:
        return "The code changed on disk during the runs, so the result is not valid; start again."
    return None


def _compared(results: Sequence[VariantResult]) -> list[VariantResult]:
    return [result for result in results if result.status != "not installed"]


def _update_record(
    home: Home,
    folder: Path,
    conditions: ParityConditions,
    results: Sequence[VariantResult],
    objection: str | None,
) -> None:
    """Write the record of equal tables, or remove an older record if a run differs."""
    if any(result.status == "different" for result in results):
        home.layout.parity_record.unlink(missing_ok=True)
    if objection is None:
        ran = [result.variant for result in _compared(results)]
        record = ParityRecord(
            conditions=conditions,
            gpu_on_threads=any(result.variant.note for result in results),
            workers=_workers_by_kind(ran),
            tables=results[0].tables,
            input=str(folder),
            documents=results[0].done + results[0].failed,
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        write_record(home, record)


def _workers_by_kind(variants: Sequence[Variant]) -> dict[str, list[int]]:
    grouped = groupby(variants, key=lambda variant: str(variant.kind))
    return {kind: [variant.workers for variant in group] for kind, group in grouped}


def _announce(
    home: Home, folder: Path, documents: int, variants: Sequence[Variant], problems: Sequence[dict[str, Any]]
) -> None:
    kinds = [f"{kind} {', '.join(map(str, numbers))}" for kind, numbers in _workers_by_kind(variants).items()]
    say(f"{documents} documents of {folder}; numbers of workers: {'; '.join(kinds)}.")
    runs = sum(variant.is_installed for variant in variants)
    say(
        f"{runs} runs from documents to vectors, each in an empty home below "
        f"{home.layout.parity_runs}; your tables are not changed."
    )
    for problem in problems:
        warn(problem_line(problem))


def _progress_printer(runs: int, as_json: bool) -> Any:
    """Return a function that prints a line per finished run; with --json it prints nothing."""
    finished: list[VariantResult] = []

    def print_result(result: VariantResult) -> None:
        finished.append(result)
        if not as_json:
            variant = f"{result.variant.kind} {result.variant.workers}"
            warn(f"run {len(finished)} of {runs}: {variant}, {result.status}, {result.seconds:.1f} s")

    return print_result


def _result_object(
    home: Home,
    folder: Path,
    conditions: ParityConditions,
    results: Sequence[VariantResult],
    objection: str | None,
) -> dict[str, Any]:
    return {
        "home": str(home.layout.home),
        "input": str(folder),
        "documents": results[0].done + results[0].failed,
        "runs": [_run_object(result) for result in results],
        **conditions.model_dump(),
        "objection": objection,
        "record": str(home.layout.parity_record) if objection is None else None,
        "exit_code": 0 if objection is None else 1,
    }


def _run_object(result: VariantResult) -> dict[str, Any]:
    difference = result.difference
    names = ("asset", "batch", "what", "row", "column", "expected", "found")
    return {
        "backend": result.variant.kind,
        "workers": result.variant.workers,
        "note": result.variant.note,
        "status": result.status,
        "seconds": round(result.seconds, 2),
        "done": result.done,
        "failed": result.failed,
        "why": result.why,
        "difference": {name: getattr(difference, name) for name in names} if difference else None,
        "kept": str(result.kept) if result.kept else None,
        "tables": result.tables,
    }


def _print_results(home: Home, results: Sequence[VariantResult], objection: str | None) -> None:
    rows = []
    for result in results:
        variant = result.variant
        status = f"{result.status} ({variant.note})" if variant.note else result.status
        rows.append([variant.kind, variant.workers, result.seconds, result.done, result.failed, status])
    grid("", ["backend", "workers", "seconds", "done", "failed", "result"], rows)
    say()
    for result in results:
        if result.why:
            warn(f"{result.variant.kind} {result.variant.workers}: {result.status}: {result.why}")
            warn(f"  its tables are in {result.kept}")
    if objection is not None:
        say(objection)
        return
    compared = _compared(results)
    equal = f"All {len(compared)} runs wrote the same {len(results[0].tables)} tables, byte for byte"
    skipped = "" if len(compared) == len(results) else "; ray is not installed and was skipped"
    say(f"{equal}{skipped}. Recorded in {home.layout.parity_record}.")
