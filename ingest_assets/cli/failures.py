"""`ingest failures list | show | retry | release`: one inbox over every stage."""

import shlex
from collections import Counter
from collections.abc import Sized
from pathlib import Path
from typing import Any

from ingest_assets.app.driver import RunReport
from ingest_assets.app.failures import (
    FailedDocument,
    ManifestRow,
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
from ingest_assets.cli.commands.failures import Choice
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.runs import executing, progress_mode


def list_failures(filters: dict[str, Any], home: Path | None, *, as_json: bool) -> None:
    """Print failures, newest first."""
    here = open_home(home, only_looks=True)
    wanted = Wanted(**filters)
    require_known(here, wanted)
    found = with_attempts(here, [failure for failure in read_inbox(here) if failure in wanted])
    if as_json:
        objects = [failure.as_object() for failure in found]
        print_json({"home": str(here.layout.home), "count": len(found), "failures": objects})
    else:
        _print_list(found, wanted)


def show_failures(document: str, home: Path | None, *, as_json: bool) -> None:
    """Print one document's failures."""
    here = open_home(home, only_looks=True)
    result = show_object(here, document)
    if as_json:
        print_json(result)
    else:
        _print_one(result)


def retry_failures(choice: Choice, config: dict[str, Any], home: Path | None, *, as_json: bool) -> int:
    """Try again and print what became of each; gives the exit code."""
    here = open_home(home, makes_no_ledger=True)
    failures = chosen(here, choice.documents, Wanted(**choice.filters), takes_all=choice.takes_all)
    became, report = list[Retried](), RunReport()
    if failures:
        with executing(here, progress_mode(as_json)) as executor:
            became, report = retry(here, failures, config, executor)
    code = 0 if all(each.became in ("done", "gone") for each in became) else 1
    if as_json:
        objects = [each.as_object() for each in became]
        ran = {"batches": report.ran, "wall_seconds": round(report.wall_seconds, 2)}
        said = {"retried": objects, "took_over": report.took_over, **ran, "exit_code": code}
        print_json({"home": str(here.layout.home), **said})
    else:
        _print_retried(became, report)
    return code


def release_failures(choice: Choice, home: Path | None, *, as_json: bool) -> None:
    """Forget failures and print which."""
    here = open_home(home, makes_no_ledger=True)
    failures = chosen(here, choice.documents, Wanted(**choice.filters), takes_all=choice.takes_all)
    released = release(here, failures, lambda path: warn(f"waiting for a run that holds {path}"))
    if as_json:
        objects = [{"doc_id": f.doc_id, "stage": f.stage, "code": f.error.code} for f in released]
        print_json({"home": str(here.layout.home), "count": len(released), "released": objects})
    else:
        _print_released(released)


def show_object(home: Home, document: str) -> dict[str, Any]:
    """Everything that is known of a document's failures, as one object."""
    every = read_inbox(home)
    doc_id = resolved(home, every, document)
    failures = with_attempts(home, [failure for failure in every if failure.doc_id == doc_id])
    return {
        "doc_id": doc_id,
        **_whereabouts(home, doc_id),
        "failures": [_failure_object(failure) for failure in failures],
        "attempts": [_attempt(row) for row in attempts_at(home, doc_id)],
    }


def _failure_object(failure: FailedDocument) -> dict[str, Any]:
    """With what the next run makes of it."""
    told = {"lasting": failure.waits_for_a_change(), "next": _next_step(failure)}
    return failure.as_object() | told


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


def _attempt(row: ManifestRow) -> dict[str, Any]:
    return {
        "stage": row.stage,
        "attempt_no": row.attempt_no,
        "status": row.status,
        "finished_at": row.finished_at,
        "seconds": row.timings.get("exec_s"),
        "run_id": row.run_id,
        "error": row.error,
    }


def _next_step(failure: FailedDocument) -> str:
    """What a person can do about it."""
    command = f"`ingest failures retry {shlex.quote(failure.doc_id)}`"
    if failure.is_in_queue:
        return f"The queue has given it up, and only a person queues it again: {command} gets it now."
    if failure.waits_for_a_change():
        return (
            "No run tries it again before its file, the settings or the libraries change. "
            f"Mend or replace the file, then {command}."
        )
    if failure.error.category == "config":
        return f"Change the setting that refuses it, then {command}; every other run tries it again too."
    return f"Every run tries it again; {command} does so now."


def _print_list(found: list[FailedDocument], wanted: Wanted) -> None:
    if not found:
        say("Nothing has failed." if wanted.is_everything() else "No failure matches.")
        return
    rows = [[f.doc_id, f.stage, f.error.code, f.error.category, _times(f.attempts)] for f in found]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for failure, row in zip(found, rows, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say(f"{cells}  {failure.error.message}")
    documents = {failure.doc_id for failure in found}
    told = f"{_count(found, 'failure')} of {_count(documents, 'document')}"
    say(f"{told}. More of one: ingest failures show DOC")


def _times(attempts: int) -> str:
    return _count(range(attempts), "attempt")


def _count(things: Sized, name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def _print_one(result: dict[str, Any]) -> None:
    file = str(result["file"])
    is_missing = Path(file).is_absolute() and not Path(file).exists()
    say(f"{result['doc_id']}  (batch {result['batch']})")
    say(f"  file: {file}" + (" (not there now)" if is_missing else ""))
    if result["queue"] is not None:
        say(f"  queue: {result['queue']['state']}, {_times(result['queue']['attempts'])}")
    if result["bytes"] is not None:
        say(f"  its bytes: {result['bytes']}")
    for failure in result["failures"]:
        _print_failure(failure)
    if not result["failures"]:
        say("  has not failed, as things are")
    for row in result["attempts"]:
        took = f"{row['seconds']:.1f} s" if row["seconds"] is not None else "-"
        error = f"  {row['error']['code']}: {row['error']['message']}" if row["error"] else ""
        where = f"{row['stage']} attempt {row['attempt_no']} {row['status']}"
        say(f"  {row['finished_at']}  {where}, {took}, run {row['run_id'] or '-'}{error}")
    for failure in result["failures"]:
        say(f"Next: {failure['next']}")


def _print_failure(failure: dict[str, Any]) -> None:
    kind = f"{failure['category']}, {'lasting' if failure['lasting'] else 'tried again'}"
    say(f"  failed in {failure['stage']}: {failure['code']} ({kind}) {failure['message']}")
    for name, value in failure["detail"].items():
        say(f"    {name}: {value}")
    say(f"    {_times(failure['attempts'])}, last at {failure['failed_at'] or 'an unknown time'}")


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
    say(f"{_count(became, 'document')} tried again: {told}; {report.wall_seconds:.1f} s in all.")
    for line in report.took_over.values():
        say(line)


def _print_released(released: list[FailedDocument]) -> None:
    if not released:
        say("No failure matches; nothing was released.")
        return
    for failure in released:
        say(f"released: {failure.doc_id} [{failure.stage} {failure.error.code}]")
    say(f"{_count(released, 'failure')} forgotten; the next run, of any kind, tries those documents again.")
