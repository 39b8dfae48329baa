"""`ingest status`: what this home knows and how far each document is."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ingest_assets.app.home import open_home
from ingest_assets.app.status import checkpoints, status_object
from ingest_assets.cli.flags import HomeFlag, JsonFlag
from ingest_assets.cli.output import (
    engine_line,
    failure_lines,
    grid,
    print_json,
    problem_line,
    queue_line,
    say,
    scan_line,
    vectors_in_words,
    warn,
)

DocumentsFlag = Annotated[bool, typer.Option("--documents", help="One line per document: its checkpoint.")]


def status(home: HomeFlag = None, documents: DocumentsFlag = False, as_json: JsonFlag = False) -> None:
    """Show sources, batches, totals and failures; with --documents, how far each document is."""
    here = open_home(home, only_looks=True)
    result = status_object(here)
    if documents:
        result["checkpoints"] = checkpoints(here)
    if as_json:
        print_json(result)
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    say(f"Home {result['home']}")
    for source in result["sources"]:
        say(f"  watches {source['path']} as {source['name']}")
    if not result["sources"]:
        say("  watches no folder yet: ingest all --input FOLDER")
    say(
        f"{result['known_documents']} documents known, {result['converted']} converted "
        f"({result['pages']} pages), {result['chunks']} chunks, "
        f"{vectors_in_words(result, with_lexical=True)}."
    )
    say(engine_line(result["pdf_engine"]))
    if result["rejected"]:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in result["rejections"].items())
        say(f"{result['admitted']} documents admitted, {result['rejected']} rejected: {reasons}.")
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
        say(f"{line['doc_id']}  {line['stage'] or '-'}  {line['error'] or ''}".rstrip())
    for line in failure_lines(result["failures"]):
        warn(line)
    for problem in result["problems"]:
        warn(problem_line(problem))


def _waiting_lines(result: dict[str, Any]) -> Iterator[str]:
    """What waits in the folders, what will leave the tables, who serves, and what is in the making."""
    folders, gone = result["folders"], result["gone_from_folders"]
    if any(count for name, count in folders.items() if name != "unchanged"):
        yield f"{scan_line(folders)} `ingest plan` says what a run makes of them."
    if gone:
        files = "1 file is gone from its folder" if gone == 1 else f"{gone} files are gone from their folders"
        doubt = ", unless only moved," if folders["waiting"] else ""
        yield f"{files} and{doubt} {'leaves' if gone == 1 else 'leave'} the tables with the next run."
    if left := result["deleted_waiting_for_a_run"] - gone:
        rows = "document still has" if left == 1 else "documents still have"
        yield f"{left} deleted {rows} rows, which leave the tables with the next run."
    served = [f"{family} by {mark['name']}" for family, mark in result["serving"].items()]
    if served:
        yield f"Served: {', '.join(served)}."
    yield from (each["summary"] for each in result["sets"])
