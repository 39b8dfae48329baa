"""What a home knows, and how far each document is."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ingest_assets.app.home import Home
from ingest_assets.app.model_switch import buildings, served
from ingest_assets.app.models import engine_object
from ingest_assets.app.plan import batch_states
from ingest_assets.app.queue_run import queue_object
from ingest_assets.app.report import corpus_numbers, failures, scan_object
from ingest_assets.intake.ledger import Document
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.runner import read_manifest
from ingest_assets.stages.admission.stage import Verdicts
from ingest_assets.storage.parquet import read_footer

# How long files that look new are read for: what has the bytes of one that is gone has only moved.
_LOOK_SECONDS = 2.0


def status_object(home: Home) -> dict[str, Any]:
    """The state of a home as one object."""
    known = home.ledger.documents()
    living = Counter(document.batch for document in known if not document.is_deleted())
    found = home.preview_scan(_LOOK_SECONDS)
    # As the last scan left them, and what this look met itself.
    problems = {(source, path): reason for source, path, reason in home.ledger.problems()}
    problems |= {(source, problem.path): problem.reason for source, problem in found.problems}
    batches = []
    for batch in home.ledger.batches():
        states = batch_states(home, batch)
        todo = {document for state in states for document in state.run}
        complete = all(state.is_complete() for state in states)
        batches.append(
            {"batch": batch, "documents": living[batch], "complete": complete, "to_run": len(todo)}
        )
    return {
        "home": str(home.layout.home),
        "sources": [{"name": source.name, "path": str(source.path)} for source in home.sources()],
        "known_documents": living.total(),
        "folders": scan_object(found)["scan"] | {"waiting": found.waiting},
        "gone_from_folders": found.deleted,
        "deleted_waiting_for_a_run": found.deleted + _still_in_tables(home, known),
        "batches": batches,
        **corpus_numbers(home),
        "serving": {
            stage: {"name": mark.name_beside(home.set_marks[stage]), "model": mark.model, "set": mark.set}
            for stage, mark in served(home).items()
        },
        "sets": [each.as_object() for each in buildings(home)],
        "pdf_engine": engine_object(home.settings_found.parsing),
        "rejections": dict(Verdicts.in_table(home.tables("admission")).reasons.most_common()),
        "failures": failures(home),
        "problems": [{"source": s, "path": p, "reason": why} for (s, p), why in sorted(problems.items())],
        **({"queue": queue_object(home)} if home.queue.find(Filter(), limit=1) else {}),
    }


def _still_in_tables(home: Home, known: Sequence[Document]) -> int:
    """Deleted documents with rows in any table; what only moved has them under its old id, and stays."""
    deleted: dict[str, set[str]] = {}
    for document in known:
        if document.is_deleted():
            deleted.setdefault(document.batch, set()).add(document.doc_id)
    places = {place for stage in home.graph for place in (home.asset(stage), home.serving(stage))}
    count = 0
    for batch, ids in deleted.items():
        footers = [read_footer(home.layout.table(place, batch)) for place in places]
        held = {doc for footer in footers if footer for doc in (*footer.items, *footer.failures)}
        count += len(ids & held)
    return count


def checkpoints(home: Home) -> list[dict[str, Any]]:
    """Each document's stages, when each finished, how many attempts it took, and the last error."""
    attempts = _attempts(home)
    tables = {stage: home.tables(stage, in_the_making=True) for stage in home.graph}
    done = {stage: table.records for stage, table in tables.items()}
    failed = {stage: table.failures for stage, table in tables.items()}
    found = []
    for document in home.ledger.documents():
        if document.is_deleted():
            continue
        doc_id = document.doc_id
        reached = [stage for stage in done if doc_id in done[stage]]
        errors = [failed[stage][doc_id].error for stage in failed if doc_id in failed[stage]]
        stages = {stage: seen for stage in done if (seen := attempts.get((stage, doc_id)))}
        checkpoint = {
            "doc_id": doc_id,
            "batch": document.batch,
            "stage": reached[-1] if reached else None,
            "finished": {s: seen["finished_at"] for s, seen in stages.items() if seen.get("finished_at")},
            "attempts": {stage: seen["attempts"] for stage, seen in stages.items()},
            "error": f"{errors[-1].code}: {errors[-1].message}" if errors else None,
        }
        found.append(checkpoint)
    return found


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
