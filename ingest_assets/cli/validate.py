"""`ingest validate`: is it the same, byte for byte, whatever runs it?"""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from ingest_assets.app.execution import (
    Circumstances,
    ParityRecord,
    circumstances_of,
    write_record,
)
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.report import scan_object
from ingest_assets.app.validate import (
    Variant,
    VariantResult,
    alone,
    choose_variants,
    require_folder,
    run_variants,
    take_in,
)
from ingest_assets.cli.flags import ExperimentalFlag, HomeFlag, JsonFlag
from ingest_assets.cli.output import grid, print_json, problem_line, say, warn
from ingest_assets.cli.run import executing
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import code_version_on_disk
from ingest_assets.samples import samples_folder

InputFlag = Annotated[
    Path | None,
    typer.Option(
        "--input", readable=False, help="Folder with documents to use instead of the shipped samples."
    ),
]
OnlyFlag = Annotated[
    str | None,
    typer.Option("--only", help="Backends to compare with inline, as in threads,processes (default: all)."),
]
WorkersFlag = Annotated[
    str | None,
    typer.Option(
        "--workers", help="Numbers of workers, as in 1,2,4 (default: these and the home's own; on Ray 1,2)."
    ),
]


def validate(
    home: HomeFlag = None,
    input: InputFlag = None,
    only: OnlyFlag = None,
    workers: WorkersFlag = None,
    experimental: ExperimentalFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Run documents inline, on threads, on processes and on Ray, and compare every byte of every table.

    Everything is computed once per backend and number of workers, in homes of their own below
    state/parity; your own tables are not touched. When all are equal, a record of it is kept, which
    features.require_parity asks for.
    """
    here = open_home(home)
    circumstances = circumstances_of(here)  # refuses settings that contradict each other, too
    folder = require_folder(input or samples_folder())
    variants = choose_variants(here, only, workers)
    with alone(here):
        found = take_in(here, folder)
        if not found.new:
            raise ConfigError(f"{folder}: no document is here; give a folder with documents.")
        problems = scan_object(found)["problems"]
        if not as_json:
            _announce(here, folder, found.new, variants, problems)
        progress = "bar" if sys.stderr.isatty() and not as_json else "log"
        run = partial(executing, progress=progress, with_settings=True)
        results = run_variants(here, variants, run, _teller(len(variants), as_json))
        objection = _objection(results, circumstances)
        _keep_or_drop_record(here, folder, circumstances, results, objection)
    if as_json:
        print_json(_result_object(here, folder, circumstances, results, objection) | {"problems": problems})
    else:
        _print_results(here, results, objection)
    return 0 if objection is None else 1


def _objection(results: Sequence[VariantResult], then: Circumstances) -> str | None:
    """Why nothing is proved, in words; None when all is equal and there was something to be equal."""
    compared = _compared(results)
    bad = [result for result in compared if not result.is_good()]
    if bad and bad[0] is results[0]:
        return "The inline run is not complete, so there is nothing to compare with."
    if bad:
        return f"{len(bad)} of {len(compared) - 1} runs differ from the inline run or are not complete."
    if not results[0].done:
        return "No document could be done, so nothing is proved."
    if code_version_on_disk() != then.code_version:
        return "The code changed on disk during the runs, so nothing is proved; start again."
    return None


def _compared(results: Sequence[VariantResult]) -> list[VariantResult]:
    return [result for result in results if result.status != "not installed"]


def _keep_or_drop_record(
    home: Home,
    folder: Path,
    circumstances: Circumstances,
    results: Sequence[VariantResult],
    objection: str | None,
) -> None:
    """A proof is kept, a disproof removes the proof before it."""
    if any(result.status == "different" for result in results):
        home.layout.parity_record.unlink(missing_ok=True)
    if objection is None:
        ran = [result.variant for result in _compared(results)]
        record = ParityRecord(
            circumstances=circumstances,
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
    return {kind: [variant.workers for variant in each] for kind, each in grouped}


def _announce(
    home: Home, folder: Path, documents: int, variants: Sequence[Variant], problems: Sequence[dict[str, Any]]
) -> None:
    ways = [f"{kind} {', '.join(map(str, numbers))}" for kind, numbers in _workers_by_kind(variants).items()]
    say(f"{documents} documents of {folder}, with as many workers: {'; '.join(ways)}.")
    runs = sum(variant.is_installed for variant in variants)
    say(
        f"That is {runs} runs from documents to vectors, each from nothing, below "
        f"{home.layout.parity_runs}; your own tables are not touched."
    )
    for problem in problems:
        warn(problem_line(problem))


def _teller(runs: int, as_json: bool) -> Any:
    """One line per run while it goes on; nothing beside a JSON object."""
    told: list[VariantResult] = []

    def tell(result: VariantResult) -> None:
        told.append(result)
        if not as_json:
            which = f"{result.variant.kind} {result.variant.workers}"
            warn(f"run {len(told)} of {runs}: {which}, {result.status}, {result.seconds:.1f} s")

    return tell


def _result_object(
    home: Home,
    folder: Path,
    circumstances: Circumstances,
    results: Sequence[VariantResult],
    objection: str | None,
) -> dict[str, Any]:
    return {
        "home": str(home.layout.home),
        "input": str(folder),
        "documents": results[0].done + results[0].failed,
        "runs": [_run_object(result) for result in results],
        **circumstances.model_dump(),
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
            warn(f"  its tables are kept in {result.kept}")
    if objection is not None:
        say(objection)
        return
    compared = _compared(results)
    what = f"All {len(compared)} runs gave the same {len(results[0].tables)} tables, byte for byte"
    left_out = "" if len(compared) == len(results) else "; ray is not installed and was left out"
    say(f"{what}{left_out}. Recorded in {home.layout.parity_record}.")
