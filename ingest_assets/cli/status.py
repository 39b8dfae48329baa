"""`ingest status`: what this home knows and how far each document is."""

from typing import Annotated, Any

import typer

from ingest_assets.cli import flags
from ingest_assets.cli.output import grid, print_json, say, warn
from ingest_assets.cli.summary import corpus_numbers, failure_lines, failures, problem_line
from ingest_assets.defs.completeness import batch_states
from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home, open_home
from ingest_assets.intake.ledger import Document
from ingest_assets.runner import read_manifest

DocumentsFlag = Annotated[bool, typer.Option("--documents", help="One line per document: its checkpoint.")]


def status(
    home: flags.HomeFlag = None, documents: DocumentsFlag = False, as_json: flags.JsonFlag = False
) -> None:
    """Show sources, batches, totals and failures; with --documents, how far each document is."""
    here = open_home(home, only_looks=True)
    result = status_object(here)
    if documents:
        result["checkpoints"] = checkpoints(here)
    if as_json:
        print_json(result)
    else:
        _print(result)


def status_object(home: Home) -> dict[str, Any]:
    """The state of a home as one object."""
    known = home.ledger.documents()
    living = [document for document in known if not document.is_deleted()]
    batches = []
    waiting = 0
    for batch in home.ledger.batches():
        states = batch_states(home, batch)
        todo = {document for state in states for document in state.run}
        waiting += states[0].removed
        complete = all(state.is_complete() for state in states)
        inside = sum(document.batch == batch for document in living)
        batches.append({"batch": batch, "documents": inside, "complete": complete, "to_run": len(todo)})
    return {
        "home": str(home.layout.home),
        "sources": [{"name": source.name, "path": str(source.path)} for source in home.sources()],
        "known_documents": len(living),
        "deleted_waiting_for_a_run": waiting,
        "batches": batches,
        **corpus_numbers(home),
        "failures": failures(home),
        "problems": [{"source": s, "path": p, "reason": r} for s, p, r in home.ledger.problems()],
    }


def checkpoints(home: Home) -> list[dict[str, Any]]:
    """Each document's stages, when each finished, how many attempts it took, and the last error."""
    attempts = _attempts(home)
    done = {stage: home.tables(stage).records for stage in GRAPH}
    failed = {stage: home.tables(stage).failures for stage in GRAPH}
    return [_checkpoint(d, attempts, done, failed) for d in home.ledger.documents() if not d.is_deleted()]


def _checkpoint(document: Document, attempts: Any, done: Any, failed: Any) -> dict[str, Any]:
    reached = [stage for stage in GRAPH if document.doc_id in done[stage]]
    errors = [failed[stage][document.doc_id].error for stage in GRAPH if document.doc_id in failed[stage]]
    stages = {stage: attempts.get((stage, document.doc_id), {}) for stage in GRAPH}
    return {
        "doc_id": document.doc_id,
        "batch": document.batch,
        "stage": reached[-1] if reached else None,
        "finished": {stage: seen["finished_at"] for stage, seen in stages.items() if seen.get("finished_at")},
        "attempts": {stage: seen["attempts"] for stage, seen in stages.items() if seen},
        "error": f"{errors[-1].code}: {errors[-1].message}" if errors else None,
    }


def _attempts(home: Home) -> dict[tuple[str, str], dict[str, Any]]:
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for stage in GRAPH:
        for row in read_manifest(home.layout.manifest(stage)):
            if row.status == "cancelled":
                continue
            entry = seen.setdefault((stage, row.item_id), {"attempts": 0})
            entry["attempts"] += 1
            if row.status == "done":
                entry["finished_at"] = row.finished_at
    return seen


def _print(result: dict[str, Any]) -> None:
    say(f"Home {result['home']}")
    for source in result["sources"]:
        say(f"  watches {source['path']} as {source['name']}")
    if not result["sources"]:
        say("  watches no folder yet: ingest all --input FOLDER")
    say(
        f"{result['known_documents']} documents known, {result['converted']} converted "
        f"({result['pages']} pages), {result['chunks']} chunks, {result['vectors']} dense and "
        f"{result['lexical']} lexical vectors."
    )
    if result["deleted_waiting_for_a_run"]:
        say(f"{result['deleted_waiting_for_a_run']} deleted documents leave the tables with the next run.")
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
