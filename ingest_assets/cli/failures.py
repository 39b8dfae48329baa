"""`ingest failures list | show | retry | release`: one inbox over every stage."""

import shlex
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ingest_assets.app.driver import RunReport
from ingest_assets.app.failures import (
    FailedDocument,
    Retried,
    Wanted,
    attempts_at,
    chosen,
    file_of,
    read_inbox,
    release,
    require_known,
    resolved,
    retry,
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
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.run import executing, progress_mode
from ingest_assets.core.errors import Category, is_for_good

app = group("What could not be done, over every stage: look at it, try it again, or let the next run do so.")

DocsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[DOC]...", help="Document ids, or the ends of them.")
]
StageFlag = Annotated[
    str | None, typer.Option("--stage", help="Only failures of this stage, such as doctags.")
]
CategoryFlag = Annotated[Category | None, typer.Option("--category", help="Only failures of this kind.")]
SourceFlag = Annotated[
    str | None, typer.Option("--source", help="Only documents of this source; queue = what was queued.")
]
BatchFlag = Annotated[str | None, typer.Option("--batch", help="Only documents of this batch.")]
AllFlag = Annotated[bool, typer.Option("--all", help="Every failure there is.")]


@app.command("list")
def list_failures(
    stage: StageFlag = None,
    category: CategoryFlag = None,
    source: SourceFlag = None,
    batch: BatchFlag = None,
    home: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """List failures, newest first: document, stage, code, category, attempts, message."""
    here = open_home(home, only_looks=True)
    wanted = Wanted(stage, category, source, batch)
    require_known(here, wanted)
    found = with_attempts(here, [failure for failure in read_inbox(here) if failure in wanted])
    if as_json:
        objects = [failure.as_object() for failure in found]
        print_json({"home": str(here.layout.home), "count": len(found), "failures": objects})
    else:
        _print_list(found, wanted)


@app.command("show")
def show_failures(document: DocArgument, home: HomeFlag = None, as_json: JsonFlag = False) -> None:
    """Show one document's failures: the errors, every attempt, its file, and what to do next."""
    here = open_home(home, only_looks=True)
    every = read_inbox(here)
    doc_id = resolved(here, every, document)
    failures = with_attempts(here, [failure for failure in every if failure.doc_id == doc_id])
    result = {
        "doc_id": doc_id,
        **_whereabouts(here, doc_id),
        "failures": [
            failure.as_object() | {"lasting": is_for_good(failure.error), "next": _next_step(failure)}
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
            for row in attempts_at(here, doc_id)
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
    home: HomeFlag = None,
    workers: WorkersFlag = None,
    retries: RetriesFlag = None,
    timeout_s: TimeoutFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Try failed documents again now, through all stages; other failed documents stay as they are."""
    here = open_home(home, makes_no_ledger=True)
    wanted = Wanted(stage, category, source, batch)
    failures = chosen(here, documents or [], wanted, takes_all=every)
    config = {"workers": workers, "retries": retries, "per_item_timeout_s": timeout_s}
    given = {name: value for name, value in config.items() if value is not None}
    became, report = list[Retried](), RunReport()
    if failures:
        with executing(here, progress_mode(as_json)) as executor:
            became, report = retry(here, failures, given, executor)
    code = 0 if all(each.became in ("done", "gone") for each in became) else 1
    if as_json:
        objects = [asdict(each) for each in became]
        ran = {"batches": report.ran, "wall_seconds": round(report.wall_seconds, 2)}
        said = {"retried": objects, "took_over": report.took_over, **ran, "exit_code": code}
        print_json({"home": str(here.layout.home), **said})
    else:
        _print_retried(became, report)
    return code


@app.command("release")
def release_failures(
    stage: StageFlag = None,
    category: CategoryFlag = None,
    source: SourceFlag = None,
    batch: BatchFlag = None,
    documents: DocsArgument = None,
    every: AllFlag = False,
    home: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Forget failures and run nothing: the next run of any kind tries those documents again."""
    here = open_home(home, makes_no_ledger=True)
    wanted = Wanted(stage, category, source, batch)
    failures = chosen(here, documents or [], wanted, takes_all=every)
    released = release(here, failures, lambda path: warn(f"waiting for a run that holds {path}"))
    if as_json:
        objects = [{"doc_id": f.doc_id, "stage": f.stage, "code": f.error.code} for f in released]
        print_json({"home": str(here.layout.home), "count": len(released), "released": objects})
        return
    if not released:
        say("No failure matches; nothing was released.")
        return
    for failure in released:
        say(f"released: {failure.doc_id} [{failure.stage} {failure.error.code}]")
    count = _count(len(released), "failure")
    say(f"{count} forgotten; the next run, of any kind, tries those documents again.")


def _whereabouts(home: Home, doc_id: str) -> dict[str, Any]:
    """The file, its batch, and, when it came through the queue, how that went and where its bytes rest."""
    document, artifact = home.ledger.document(doc_id), home.queue.get(doc_id)
    found = {"batch": document.batch if document else None, "file": None, "bytes": None, "queue": None}
    if document is not None:
        folders = {source.name: source.path for source in home.ledger.sources()}
        found["file"] = file_of(document, folders)
    if artifact is None or (document is not None and document.resolver is None):
        return found
    path = home.layout.blob(artifact.content_hash) if artifact.content_hash else None
    return {
        "batch": artifact.batch,
        "file": artifact.origin,
        "bytes": str(path) if path is not None and path.is_file() else None,
        "queue": {"state": artifact.state, "attempts": artifact.attempts},
    }


def _next_step(failure: FailedDocument) -> str:
    """What a person can do about it."""
    command = f"`ingest failures retry {shlex.quote(failure.doc_id)}`"
    if failure.is_in_queue:
        return f"The queue has given it up, and only a person queues it again: {command} gets it now."
    if is_for_good(failure.error):
        return (
            "No run tries it again before its file, the settings or the libraries change. "
            f"Mend or replace the file, then {command}."
        )
    if failure.error.category == "config":
        return f"Change the setting that refuses it, then {command}; every other run tries it again too."
    return f"Every run tries it again; {command} does so now."


def _print_list(found: list[FailedDocument], wanted: Wanted) -> None:
    if not found:
        say("Nothing has failed." if wanted == Wanted() else "No failure matches.")
        return
    rows = [[f.doc_id, f.stage, f.error.code, f.error.category, _count(f.attempts, "attempt")] for f in found]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for failure, row in zip(found, rows, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say(f"{cells}  {failure.error.message}")
    documents = {failure.doc_id for failure in found}
    told = f"{_count(len(found), 'failure')} of {_count(len(documents), 'document')}"
    say(f"{told}. More of one: ingest failures show DOC")


def _count(count: int, name: str) -> str:
    return f"{count} {name}" + ("" if count == 1 else "s")


def _print_one(result: dict[str, Any]) -> None:
    file = str(result["file"])
    is_missing = Path(file).is_absolute() and not Path(file).exists()
    say(f"{result['doc_id']}  (batch {result['batch']})")
    say(f"  file: {file}" + (" (not there now)" if is_missing else ""))
    if result["queue"] is not None:
        say(f"  queue: {result['queue']['state']}, {_count(result['queue']['attempts'], 'attempt')}")
    if result["bytes"] is not None:
        say(f"  its bytes: {result['bytes']}")
    for failure in result["failures"]:
        kind = f"{failure['category']}, {'lasting' if failure['lasting'] else 'tried again'}"
        say(f"  failed in {failure['stage']}: {failure['code']} ({kind}) {failure['message']}")
        for name, value in failure["detail"].items():
            say(f"    {name}: {value}")
        attempts = _count(failure["attempts"], "attempt")
        say(f"    {attempts}, last at {failure['failed_at'] or 'an unknown time'}")
    if not result["failures"]:
        say("  has not failed, as things are")
    for row in result["attempts"]:
        took = f"{row['seconds']:.1f} s" if row["seconds"] is not None else "-"
        error = f"  {row['error']['code']}: {row['error']['message']}" if row["error"] else ""
        where = f"{row['stage']} attempt {row['attempt_no']} {row['status']}"
        say(f"  {row['finished_at']}  {where}, {took}, run {row['run_id'] or '-'}{error}")
    for failure in result["failures"]:
        say(f"Next: {failure['next']}")


def _print_retried(became: list[Retried], report: RunReport) -> None:
    if not became:
        say("No failure matches; nothing was run.")
        return
    for each in became:
        where = f"  [{each.stage} {each.code}]" if each.stage else ""
        say(f"{each.became:<10}  {each.doc_id}{where}  {each.message}".rstrip())
    counts = Counter(each.became for each in became)
    words = {"failed": "failed again"}
    told = ", ".join(f"{count} {words.get(name, name)}" for name, count in counts.items())
    say(f"{_count(len(became), 'document')} tried again: {told}; {report.wall_seconds:.1f} s in all.")
    for line in report.took_over.values():
        say(line)
