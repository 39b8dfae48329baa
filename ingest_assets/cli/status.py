"""`ingest status`: what this home knows and how far each document is."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ingest_assets.cli.model_list import engine_line, engine_object
from ingest_assets.cli.output import grid, print_json, say, warn
from ingest_assets.cli.queue_state import queue_line, queue_object
from ingest_assets.cli.summary import (
    corpus_numbers,
    failure_lines,
    failures,
    problem_line,
    scan_line,
    scan_object,
    vectors_in_words,
)
from ingest_assets.defs.completeness import batch_states
from ingest_assets.defs.home import Home, open_home
from ingest_assets.defs.sets import buildings, families
from ingest_assets.defs.verdicts import verdicts_in
from ingest_assets.intake.inbox import Filter
from ingest_assets.intake.ledger import Document
from ingest_assets.intake.scan import ScanReport
from ingest_assets.runner import read_manifest
from ingest_assets.storage.footer import read_footer

# How long files that look new are read for: what has the bytes of one that is gone has only moved.
_LOOK_SECONDS = 2.0


def show_status(home: Path | None, *, with_documents: bool, as_json: bool) -> None:
    """Print the state of a home, for people or programs."""
    here = open_home(home, only_looks=True)
    result = status_object(here)
    if with_documents:
        result["checkpoints"] = checkpoints(here)
    if as_json:
        print_json(result)
    else:
        _print(result)


def status_object(home: Home) -> dict[str, Any]:
    """The state of a home as one object."""
    known = home.ledger.documents()
    living = Counter(document.batch for document in known if not document.is_deleted())
    found = home.preview_scan(_LOOK_SECONDS)
    return {
        "home": str(home.layout.home),
        "sources": [{"name": source.name, "path": str(source.path)} for source in home.sources()],
        "known_documents": living.total(),
        "folders": scan_object(found)["scan"] | {"waiting": found.waiting},
        "gone_from_folders": found.deleted,
        "deleted_waiting_for_a_run": found.deleted + _still_in_tables(home, known),
        "batches": [_batch(home, batch, living[batch]) for batch in home.ledger.batches()],
        **corpus_numbers(home),
        "serving": serving(home),
        "sets": [each.as_object() for each in buildings(home)],
        "pdf_engine": engine_object(home.settings_found.parsing),
        "rejections": dict(verdicts_in(home.tables("admission")).reasons.most_common()),
        "failures": failures(home),
        "problems": _problems(home, found),
        **({"queue": queue_object(home)} if home.queue.find(Filter(), limit=1) else {}),
    }


def serving(home: Home) -> dict[str, dict[str, str]]:
    """Of each family that has rows, which model and which set made those that readers see."""
    found = {stage: home.family(stage).served() for stage in families(home)}
    return {
        stage: {"name": mark.name_beside(home.set_mark(stage)), "model": mark.model, "set": mark.set}
        for stage, mark in found.items()
        if mark is not None
    }


def _batch(home: Home, batch: str, documents: int) -> dict[str, Any]:
    states = batch_states(home, batch)
    todo = {document for state in states for document in state.run}
    complete = all(state.is_complete() for state in states)
    return {"batch": batch, "documents": documents, "complete": complete, "to_run": len(todo)}


def _still_in_tables(home: Home, known: Sequence[Document]) -> int:
    """Deleted documents with rows in any table; what only moved has them under its old id, and stays."""
    deleted: dict[str, set[str]] = {}
    for document in known:
        if document.is_deleted():
            deleted.setdefault(document.batch, set()).add(document.doc_id)
    return sum(len(ids & _held(home, batch)) for batch, ids in deleted.items())


def _held(home: Home, batch: str) -> set[str]:
    places = {place for stage in home.graph for place in (home.asset(stage), home.serving(stage))}
    footers = (read_footer(home.layout.table(place, batch)) for place in places)
    return {doc for footer in footers if footer is not None for doc in (*footer.items, *footer.failures)}


def _problems(home: Home, found: ScanReport) -> list[dict[str, Any]]:
    """As the last scan left them, and what this look met itself."""
    reasons = {(source, path): reason for source, path, reason in home.ledger.problems()}
    reasons |= {(source, problem.path): problem.reason for source, problem in found.problems}
    return [{"source": s, "path": p, "reason": reason} for (s, p), reason in sorted(reasons.items())]


def checkpoints(home: Home) -> list[dict[str, Any]]:
    """Each document's stages, when each finished, how many attempts it took, and the last error."""
    attempts = _attempts(home)
    tables = {stage: home.tables(stage, in_the_making=True) for stage in home.graph}
    done = {stage: table.records for stage, table in tables.items()}
    failed = {stage: table.failures for stage, table in tables.items()}
    return [_checkpoint(d, attempts, done, failed) for d in home.ledger.documents() if not d.is_deleted()]


def _checkpoint(document: Document, attempts: Any, done: Any, failed: Any) -> dict[str, Any]:
    reached = [stage for stage in done if document.doc_id in done[stage]]
    errors = [failed[stage][document.doc_id].error for stage in failed if document.doc_id in failed[stage]]
    stages = {stage: attempts.get((stage, document.doc_id), {}) for stage in done}
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
    for stage in home.graph:
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
