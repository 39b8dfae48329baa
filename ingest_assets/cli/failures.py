"""`ingest failures list | show | retry | release`: the failures of all stages."""

import shlex
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ingest_assets.app.driver import RunReport
from ingest_assets.app.failures import (
    FailedDocument,
    FailureFilter,
    RetryResult,
    file_of,
    read_attempts,
    read_inbox,
    release,
    require_known,
    resolve_doc_id,
    retry,
    select_failures,
    with_attempts,
)
from ingest_assets.app.home import Home, open_home
from ingest_assets.cli.flags import (
    DocArgument,
    HomeFlag,
    JsonFlag,
    RetriesFlag,
    TimeoutFlag,
    WorkersFlag,
    group,
)
from ingest_assets.cli.output import counted, print_json, say, warn
from ingest_assets.cli.run import executing, progress_mode
from ingest_assets.core.errors import Category, is_permanent

app = group("List the failures of all stages, retry them, or release them for the next run.")

DocsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[DOC]...", help="Document ids, endings of ids, or absolute paths."),
]
StageFlag = Annotated[
    str | None, typer.Option("--stage", help="Only failures of this stage, such as doctags.")
]
CategoryFlag = Annotated[Category | None, typer.Option("--category", help="Only failures of this category.")]
SourceFlag = Annotated[
    str | None, typer.Option("--source", help="Only documents of this source; queue = queued documents.")
]
BatchFlag = Annotated[str | None, typer.Option("--batch", help="Only documents of this batch.")]
AllFlag = Annotated[bool, typer.Option("--all", help="All failures.")]


@app.command("list")
def list_failures(
    stage: StageFlag = None,
    category: CategoryFlag = None,
    source: SourceFlag = None,
    batch: BatchFlag = None,
    home_path: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """List failures, newest first: document, stage, code, category, attempts, message."""
    home = open_home(home_path, read_only=True)
    selected = FailureFilter(stage, category, source, batch)
    require_known(home, selected)
    failures = with_attempts(home, [failure for failure in read_inbox(home) if failure in selected])
    if as_json:
        objects = [failure.as_object() for failure in failures]
        print_json({"home": str(home.layout.home), "count": len(failures), "failures": objects})
    else:
        _print_list(failures, selected)


@app.command("show")
def show_failures(document: DocArgument, home_path: HomeFlag = None, as_json: JsonFlag = False) -> None:
    """Show one document's failures: errors, attempts, its file, and what to do next."""
    home = open_home(home_path, read_only=True)
    inbox = read_inbox(home)
    doc_id = resolve_doc_id(home, inbox, document)
    failures = with_attempts(home, [failure for failure in inbox if failure.doc_id == doc_id])
    result = {
        "doc_id": doc_id,
        **_location(home, doc_id),
        "failures": [
            failure.as_object() | {"lasting": is_permanent(failure.error), "next": _next_step(failure)}
            for failure in failures
        ],
        "attempts": [
            {
                "stage": row.stage,
                "attempt_no": row.attempt_no,
                "status": row.status,
                "finished_at": row.finished_at,
                "seconds": row.timings.get("exec_s"),
                "run_id": row.run_id,
                "error": row.error,
            }
            for row in read_attempts(home, doc_id)
        ],
    }
    if as_json:
        print_json(result)
    else:
        _print_one(result)


@app.command("retry")
def retry_failures(
    stage: StageFlag = None,
    category: CategoryFlag = None,
    source: SourceFlag = None,
    batch: BatchFlag = None,
    documents: DocsArgument = None,
    every: AllFlag = False,
    home_path: HomeFlag = None,
    workers: WorkersFlag = None,
    retries: RetriesFlag = None,
    timeout_s: TimeoutFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Retry failed documents now, through all stages. Other failed documents are not retried."""
    home = open_home(home_path, creates_ledger=False)
    selected = FailureFilter(stage, category, source, batch)
    failures = select_failures(home, documents or [], selected, takes_all=every)
    flags = {"workers": workers, "retries": retries, "per_item_timeout_s": timeout_s}
    config = {name: value for name, value in flags.items() if value is not None}
    results, report = list[RetryResult](), RunReport()
    if failures:
        with executing(home, progress_mode(as_json)) as executor:
            results, report = retry(home, failures, config, executor)
    code = 0 if all(result.became in ("done", "gone") for result in results) else 1
    if as_json:
        run = {"batches": report.ran, "wall_seconds": round(report.wall_seconds, 2), "exit_code": code}
        retried = {"retried": [asdict(result) for result in results], "took_over": report.took_over}
        print_json({"home": str(home.layout.home), **retried, **run})
    else:
        _print_retried(results, report)
    return code


@app.command("release")
def release_failures(
    stage: StageFlag = None,
    category: CategoryFlag = None,
    source: SourceFlag = None,
    batch: BatchFlag = None,
    documents: DocsArgument = None,
    every: AllFlag = False,
    home_path: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Forget failures without running anything: the next run retries the documents."""
    home = open_home(home_path, creates_ledger=False)
    selected = FailureFilter(stage, category, source, batch)
    failures = select_failures(home, documents or [], selected, takes_all=every)
    released = release(home, failures, lambda path: warn(f"waiting for a run that has locked {path}"))
    if as_json:
        objects = [{"doc_id": f.doc_id, "stage": f.stage, "code": f.error.code} for f in released]
        print_json({"home": str(home.layout.home), "count": len(released), "released": objects})
        return
    if not released:
        say("No failure matches; nothing was released.")
        return
    for failure in released:
        say(f"released: {failure.doc_id} [{failure.stage} {failure.error.code}]")
    count = counted(len(released), "failure")
    say(f"{count} released; the next run retries the documents.")


def _location(home: Home, doc_id: str) -> dict[str, Any]:
    """Return a document's batch and file; for a queued one also its state and where its bytes are stored."""
    document, artifact = home.ledger.document(doc_id), home.queue.get(doc_id)
    location = {"batch": document.batch if document else None, "file": None, "bytes": None, "queue": None}
    if document is not None:
        folders = {source.name: source.path for source in home.ledger.sources()}
        location["file"] = file_of(document, folders)
    if artifact is None or (document is not None and document.resolver is None):
        return location
    path = home.layout.blob(artifact.content_hash) if artifact.content_hash else None
    return {
        "batch": artifact.batch,
        "file": artifact.origin,
        "bytes": str(path) if path is not None and path.is_file() else None,
        "queue": {"state": artifact.state, "attempts": artifact.attempts},
    }


def _next_step(failure: FailedDocument) -> str:
    """Return what the user can do about a failure."""
    command = f"`ingest failures retry {shlex.quote(failure.doc_id)}`"
    if failure.is_in_queue:
        return f"The queue no longer retries it. Run {command} to retry it now."
    if failure.error.code == "E_PARSE_UNSUPPORTED":
        return "Convert or unpack it and remove it from the folder, or exclude it: sources.NAME.exclude."
    if is_permanent(failure.error):
        return (
            "Replace the file and run `ingest all`. Runs skip it until the file, the settings or the "
            f"libraries change; {command} tries it again as it is."
        )
    if failure.error.category == "config":
        return f"Fix the setting that causes it, then run {command}; any later run retries it as well."
    return f"Every run retries it; {command} does so now."


def _print_list(failures: list[FailedDocument], selected: FailureFilter) -> None:
    if not failures:
        say("No failures." if selected == FailureFilter() else "No failure matches.")
        return
    rows = [
        [f.doc_id, f.stage, f.error.code, f.error.category, counted(f.attempts, "attempt")] for f in failures
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for failure, row in zip(failures, rows, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say(f"{cells}  {failure.error.message}")
    documents = counted(len({failure.doc_id for failure in failures}), "document")
    say(f"{counted(len(failures), 'failure')} of {documents}. Details: ingest failures show DOC")


def _print_one(result: dict[str, Any]) -> None:
    file = str(result["file"])
    is_missing = Path(file).is_absolute() and not Path(file).exists()
    say(f"{result['doc_id']}  (batch {result['batch']})")
    say(f"  file: {file}" + (" (missing)" if is_missing else ""))
    if result["queue"] is not None:
        say(f"  queue: {result['queue']['state']}, {counted(result['queue']['attempts'], 'attempt')}")
    if result["bytes"] is not None:
        say(f"  stored in: {result['bytes']}")
    for failure in result["failures"]:
        kind = f"{failure['category']}, {'permanent' if failure['lasting'] else 'will be retried'}"
        say(f"  failed in {failure['stage']}: {failure['code']} ({kind}) {failure['message']}")
        for name, value in failure["detail"].items():
            say(f"    {name}: {value}")
        attempts = counted(failure["attempts"], "attempt")
        say(f"    {attempts}, last at {failure['failed_at'] or 'an unknown time'}")
    if not result["failures"]:
        say("  no failures")
    for row in result["attempts"]:
        took = f"{row['seconds']:.1f} s" if row["seconds"] is not None else "-"
        error = f"  {row['error']['code']}: {row['error']['message']}" if row["error"] else ""
        where = f"{row['stage']} attempt {row['attempt_no']} {row['status']}"
        say(f"  {row['finished_at']}  {where}, {took}, run {row['run_id'] or '-'}{error}")
    for failure in result["failures"]:
        say(f"Next: {failure['next']}")


def _print_retried(results: list[RetryResult], report: RunReport) -> None:
    if not results:
        say("No failure matches; nothing was run.")
        return
    for result in results:
        where = f"  [{result.stage} {result.code}]" if result.stage else ""
        say(f"{result.became:<10}  {result.doc_id}{where}  {result.message}".rstrip())
    outcomes = Counter(result.became for result in results)
    words = {"failed": "failed again"}
    counts = ", ".join(f"{count} {words.get(name, name)}" for name, count in outcomes.items())
    say(f"{counted(len(results), 'document')} retried: {counts}; {report.wall_seconds:.1f} s in total.")
    for line in report.took_over.values():
        say(line)
