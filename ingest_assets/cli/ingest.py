"""`ingest all | doctags | chunk | embed`: documents in, tables out."""

from pathlib import Path
from typing import Any

from ingest_assets.app.driver import STATISTICS, RunReport, ScanReport, finish, run_batches
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.model_switch import buildings
from ingest_assets.app.queue_run import queue_line, queue_object
from ingest_assets.app.report import (
    corpus_numbers,
    failure_lines,
    failures,
    problem_line,
    scan_line,
    scan_object,
    table_folders,
    vectors_in_words,
)
from ingest_assets.cli.output import grid, print_json, say, warn
from ingest_assets.cli.planning import take_in
from ingest_assets.cli.runs import executing, progress_mode


def ingest(
    path: Path | None, folder: Path | None, stages: list[str], config: dict[str, Any], as_json: bool
) -> int:
    """Scan, run, report; gives the exit code."""
    home = open_home(path)
    stages = [stage for stage in stages if stage in home.graph]
    scan = take_in(home, folder, stages, RunOptions(**config))
    with executing(home, progress_mode(as_json)) as executor:
        report = run_batches(home, stages, config, executor, reason="cli")
        finish(home, executor, report)
    result = result_object(home, scan, report)
    if as_json:
        print_json(result)
    else:
        print_result(result)
    return int(result["exit_code"])


def result_object(home: Home, scan: ScanReport | None, report: RunReport) -> dict[str, Any]:
    """Everything a command has to say, for people and programs alike; a scan if there was one, and the queue
    if anything ever was in it."""
    failed = failures(home, report.errors)
    found = {} if scan is None else scan_object(scan)
    queue = queue_object(home)
    return {
        "home": str(home.layout.home),
        **found,
        **corpus_numbers(home),
        **({"queue": queue} if any(queue["states"].values()) else {}),
        "sets": [each.as_object() for each in buildings(home)],
        "took_over": report.took_over,
        "failures": failed,
        "broken_batches": report.broken,
        "batches": {"ran": report.ran, "complete_before": report.complete_before},
        "stages": {
            stage: {
                "scheduled": totals.scheduled,
                "skipped": totals.skipped,
                "succeeded": totals.succeeded,
                "failed": totals.failed,
                "cancelled": totals.cancelled,
                "retries": totals.retries,
                "seconds": round(totals.seconds, 2),
            }
            for stage, totals in report.stages.items()
        },
        "wall_seconds": round(report.wall_seconds, 2),
        "tables": table_folders(home),
        "exit_code": int(bool(failed or found.get("problems") or report.broken or queue["states"]["error"])),
    }


def print_result(result: dict[str, Any]) -> None:
    """The same, for a person."""
    rows = [
        [stage, t["succeeded"], t["skipped"], t["failed"], t["cancelled"], float(t["seconds"])]
        for stage, t in result["stages"].items()
    ]
    if "scan" in result:
        say(scan_line(result["scan"]))
    grid("", ["stage", "done", "skipped", "failed", "cancelled", "seconds"], rows)
    say()
    say(
        f"{result['documents']} documents, {result['converted']} converted ({result['pages']} pages), "
        f"{result['admitted']} admitted, {result['chunks']} chunks, "
        f"{vectors_in_words(result, with_lexical=False)}, "
        f"{len(result['failures'])} failed; "
        f"{result['wall_seconds']:.1f} s in all."
    )
    for line in result["took_over"].values():
        say(line)
    for each in result["sets"]:
        say(each["summary"])
    if "queue" in result:
        say(queue_line(result["queue"]))
    for line in failure_lines(result["failures"]):
        warn(line)
    for problem in result.get("problems", ()):
        warn(problem_line(problem))
    for batch, why in result["broken_batches"].items():
        warn(f"{batch}: {why}" if batch == STATISTICS else f"batch {batch} is not complete: {why}")
    say(f"Tables: {result['home']}/data/<asset>/<batch>.parquet")
