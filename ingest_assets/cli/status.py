"""`ingest status`: the documents of a home and how far they are processed."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ingest_assets.app.home import open_home
from ingest_assets.app.status import checkpoints, status_object
from ingest_assets.cli.flags import HomeFlag, JsonFlag
from ingest_assets.cli.output import (
    counted,
    engine_line,
    failure_lines,
    grid,
    print_json,
    problem_line,
    queue_line,
    reasons_in_words,
    say,
    scan_line,
    vectors_in_words,
)

DocumentsFlag = Annotated[bool, typer.Option("--documents", help="List documents with their last stage.")]


def status(home_path: HomeFlag = None, documents: DocumentsFlag = False, as_json: JsonFlag = False) -> None:
    """Show sources, batches, totals and failures; with --documents, the last stage of each document."""
    home = open_home(home_path, read_only=True)
    result = status_object(home)
    if documents:
        result["checkpoints"] = checkpoints(home)
    if as_json:
        print_json(result)
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    say(f"Home {result['home']}")
    for source in result["sources"]:
        say(f"  watches {source['path']} as {source['name']}")
    if not result["sources"]:
        say("  watches no folder yet; add one (ingest all --input FOLDER), or name another home (--home)")
    say(
        f"{counted(result['known_documents'], 'document')} known, {result['converted']} converted "
        f"({result['pages']} pages), {counted(result['chunks'], 'chunk')}, "
        f"{vectors_in_words(result, with_lexical=True)}."
    )
    say(engine_line(result["pdf_engine"]))
    if result["rejected"]:
        reasons = reasons_in_words(result["rejections"])
        say(f"{counted(result['admitted'], 'document')} admitted, {result['rejected']} rejected: {reasons}.")
    for line in _waiting_lines(result):
        say(line)
    if "queue" in result:
        say(queue_line(result["queue"]))
    rows = [
        [b["batch"], b["documents"], "yes" if b["complete"] else "no", b["to_run"]] for b in result["batches"]
    ]
    if rows:
        grid("", ["batch", "documents", "complete", "to run"], rows)
    for line in result.get("checkpoints", []):
        say(f"{line['doc_id']}  {_progress_of(line)}")
    for line in failure_lines(result["failures"]):
        say(line)
    for problem in result["problems"]:
        say(problem_line(problem))


def _progress_of(checkpoint: dict[str, Any]) -> str:
    """Return how far a document is: `done`, `failed: E_…`, `rejected: duplicate`, or its last stage."""
    if checkpoint["error"]:
        return f"failed: {checkpoint['error']}"
    if checkpoint["rejected"]:
        return f"rejected: {checkpoint['rejected']}"
    if checkpoint["is_complete"]:
        return "done"
    return f"done up to {checkpoint['stage']}" if checkpoint["stage"] else "not started"


def _waiting_lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield lines about unscanned changes, rows to be removed, active models and pending switches."""
    folders, gone = result["folders"], result["gone_from_folders"]
    if any(count for name, count in folders.items() if name != "unchanged"):
        yield f"{scan_line(folders)} `ingest plan` shows what a run would do."
    if gone:
        files = "1 file was deleted" if gone == 1 else f"{gone} files were deleted"
        doubt = " or moved" if folders["waiting"] else ""
        yield f"{files}{doubt}; the next run updates the tables."
    if left := result["deleted_waiting_for_a_run"] - gone:
        rows = "document still has" if left == 1 else "documents still have"
        yield f"{left} deleted {rows} rows; the next run removes them."
    active = [f"{family} ({model['name']})" for family, model in result["serving"].items()]
    if active:
        yield f"Active model sets: {', '.join(active)}."
    yield from (pending["summary"] for pending in result["sets"])
