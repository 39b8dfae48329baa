"""`ingest all | doctags | chunk | embed`: run stages; and running batches for the other commands."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ingest_assets.app.driver import STATISTICS, Executor, RunReport, ScanReport, finish, run_batches
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.model_switch import pending_switches
from ingest_assets.app.queue_run import queue_object
from ingest_assets.app.report import (
    corpus_numbers,
    failures,
    rejections,
    scan_object,
)
from ingest_assets.cli.flags import (
    DryRunFlag,
    ExperimentalFlag,
    FromFlag,
    HomeFlag,
    InputFlag,
    JsonFlag,
    RetriesFlag,
    TimeoutFlag,
    UntilFlag,
    WorkersFlag,
)
from ingest_assets.cli.output import (
    counted,
    failure_lines,
    grid,
    print_json,
    problem_line,
    queue_line,
    reasons_in_words,
    say,
    scan_line,
    vectors_in_words,
    warn,
)
from ingest_assets.cli.plan import prepare_run, selected_stages, show_plan
from ingest_assets.cli.signals import INTERRUPTS
from ingest_assets.core.items import STEPS, Step

ResumeFlag = Annotated[
    bool, typer.Option("--resume/--no-resume", help="Skip documents that are already done.")
]
ForceFlag = Annotated[
    bool, typer.Option("--force", help="Recompute every document; old output goes to state/quarantine.")
]
PolicyFlag = Annotated[
    Literal["io", "cpu", "gpu"] | None, typer.Option("--policy", help="Threads (io, gpu) or processes (cpu).")
]
BackendFlag = Annotated[
    Literal["local", "ray"] | None, typer.Option("--backend", help="This machine, or a Ray cluster.")
]
RunOnFlag = Annotated[
    Literal["auto", "inline", "threads", "processes"] | None,
    typer.Option("--run-on", help="With --backend local: auto = by policy, inline = one at a time."),
]
BudgetFlag = Annotated[
    int | None, typer.Option("--error-budget", min=0, help="Failed documents allowed before a stage stops.")
]
QueueFlag = Annotated[
    int | None, typer.Option("--max-queue", min=1, help="Documents scheduled ahead of the workers.")
]


def _run_up_to(last: Step, help_text: str) -> Callable[..., int]:
    """Return a command that runs the stages up to a step."""

    def command(
        home_path: HomeFlag = None,
        input: InputFlag = None,
        first: FromFlag = STEPS[0],
        until: UntilFlag = last,
        resume: ResumeFlag = True,
        force: ForceFlag = False,
        workers: WorkersFlag = None,
        policy: PolicyFlag = None,
        backend: BackendFlag = None,
        run_on: RunOnFlag = None,
        retries: RetriesFlag = None,
        timeout_s: TimeoutFlag = None,
        error_budget: BudgetFlag = None,
        max_queue: QueueFlag = None,
        experimental: ExperimentalFlag = False,
        dry_run: DryRunFlag = False,
        as_json: JsonFlag = False,
    ) -> int:
        stages = selected_stages(first, until)
        config = {
            "workers": workers,
            "policy": policy,
            "backend": backend,
            "run_on": run_on,
            "retries": retries,
            "per_item_timeout_s": timeout_s,
            "error_budget": error_budget,
            "max_queue": max_queue,
            "resume": None if resume else False,
            "force": force or None,
        }
        config = {name: value for name, value in config.items() if value is not None}
        if dry_run:
            show_plan(home_path, input, stages, config, as_json)
            return 0
        return _ingest(home_path, input, stages, config, as_json)

    command.__doc__ = help_text
    return command


_SKIPS_DONE = "Documents that are already done are skipped."
run_all = _run_up_to(STEPS[-1], f"Run all stages, from documents to embeddings. {_SKIPS_DONE}")
run_doctags = _run_up_to("doctags", f"Run the stages up to doctags: read the documents. {_SKIPS_DONE}")
run_chunk = _run_up_to("chunks", f"Run the stages up to chunks: read and chunk the documents. {_SKIPS_DONE}")
run_embed = _run_up_to("embeddings", f"Run all stages up to embeddings, like `ingest all`. {_SKIPS_DONE}")


def _ingest(
    path: Path | None, folder: Path | None, stages: list[str], config: dict[str, Any], as_json: bool
) -> int:
    """Scan, run the batches and print the result. Return the exit code."""
    home = open_home(path)
    stages = [stage for stage in stages if stage in home.graph]
    scan = prepare_run(home, folder, stages, RunOptions(**config))
    with executing(home, progress_mode(as_json)) as executor:
        report = run_batches(home, stages, config, executor, reason="cli")
        finish(home, executor, report)
    result = result_object(home, scan, report)
    if as_json:
        print_json(result)
    else:
        print_result(result)
    return int(result["exit_code"])


@contextlib.contextmanager
def executing(home: Home, progress: str, *, with_settings: bool = False) -> Iterator[Executor]:
    """Open an executor that runs batches of a home in this process; the first Ctrl-C stops it gracefully.

    `with_settings` is for a home whose settings differ from its own file.
    """
    with INTERRUPTS.exiting_at_once():
        from ingest_assets.defs.in_process import InProcess  # Dagster takes a second to load

    grace_s = max(home.options(stage).grace_s for stage in home.graph)
    message = f"ingest: stopping; documents get up to {grace_s:g} s, Ctrl-C again to stop immediately"
    in_process = InProcess(
        home,
        progress=progress,
        with_settings=with_settings,
        is_interrupted=lambda: INTERRUPTS.count > 0,
        during_run=lambda: INTERRUPTS.announcing(message),
    )
    with in_process as executor:
        yield executor


def progress_mode(as_json: bool) -> str:
    """Return how to show progress: a bar on a terminal, lines elsewhere, Dagster's log with --json."""
    if as_json:
        return "log"
    return "bar" if sys.stderr.isatty() else "lines"


def result_object(home: Home, scan: ScanReport | None, report: RunReport) -> dict[str, Any]:
    """Return the result of a command as a JSON object, with the scan and the queue if there are any."""
    failed = failures(home, report.errors)
    scanned = {} if scan is None else scan_object(scan)
    problems = scanned.get("problems")
    queue, assets = queue_object(home), [home.serving_asset(stage) for stage in home.graph]
    return {
        "home": str(home.layout.home),
        **scanned,
        **corpus_numbers(home),
        "rejections": rejections(home),
        **({"queue": queue} if any(queue["states"].values()) else {}),
        "sets": [switch.as_object() for switch in pending_switches(home)],
        "took_over": report.took_over,
        "failures": failed,
        "broken_batches": report.broken,
        "batches": {"ran": report.ran, "complete_before": report.complete_before},
        "stages": {
            stage: asdict(totals) | {"seconds": round(totals.seconds, 2)}
            for stage, totals in report.stages.items()
        },
        "wall_seconds": round(report.wall_seconds, 2),
        "tables": {asset: str(home.layout.asset_folder(asset)) for asset in assets},
        "exit_code": int(bool(failed or problems or report.broken or queue["states"]["error"])),
    }


def print_result(result: dict[str, Any]) -> None:
    """Print the result of a command as text."""
    if "scan" in result:
        say(scan_line(result["scan"]))
    _print_stages(result["stages"])
    say()
    say(
        f"{counted(result['documents'], 'document')}, {result['converted']} converted "
        f"({counted(result['pages'], 'page')}), {result['admitted']} admitted, "
        f"{result['rejected']} rejected, "
        f"{counted(result['chunks'], 'chunk')}, {vectors_in_words(result, with_lexical=False)}, "
        f"{len(result['failures'])} failed; {result['wall_seconds']:.1f} s in total."
    )
    if not result["documents"]:
        say("No documents: the watched folders and the queue are empty.")
    if result["rejections"]:
        say(f"Rejected: {reasons_in_words(result['rejections'])}; `ingest status --documents` names them.")
    for line in result["took_over"].values():
        say(line)
    for switch in result["sets"]:
        say(switch["summary"])
    if "queue" in result:
        say(queue_line(result["queue"]))
    for line in failure_lines(result["failures"]):
        warn(line)
    for problem in result.get("problems", ()):
        warn(problem_line(problem))
    for batch, reason in result["broken_batches"].items():
        warn(f"{batch}: {reason}" if batch == STATISTICS else f"batch {batch} is not complete: {reason}")
    say(f"Tables: {result['home']}/data/<asset>/<batch>.parquet")


def _print_stages(stages: dict[str, Any]) -> None:
    rows = [
        [
            stage,
            totals["succeeded"],
            totals["skipped"] - totals["known_failures"],
            totals["failed"],
            totals["known_failures"],
            totals["cancelled"],
            float(totals["seconds"]),
        ]
        for stage, totals in stages.items()
    ]
    grid("", ["stage", "done", "skipped", "failed", "failed before", "cancelled", "seconds"], rows)
