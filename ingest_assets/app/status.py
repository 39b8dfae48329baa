"""The state of a home, and the progress of each document."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from ingest_assets.app.home import Home
from ingest_assets.app.model_switch import pending_switches, serving_sets
from ingest_assets.app.models import engine_object
from ingest_assets.app.plan import batch_states
from ingest_assets.app.queue_run import queue_object
from ingest_assets.app.report import corpus_numbers, failures, rejections, scan_object
from ingest_assets.intake.ledger import Document
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.runner import read_manifest
from ingest_assets.storage.parquet import read_footer
from ingest_assets.storage.table import Table

# Time for hashing files that seem new: a file with the bytes of a missing one has only moved.
_HASH_SECONDS = 2.0


def status_object(home: Home) -> dict[str, Any]:
    """Return the state of a home as a JSON object."""
    known = home.ledger.documents()
    living = Counter(document.batch for document in known if not document.is_deleted())
    preview = home.preview_scan(_HASH_SECONDS)
    sources = home.sources()
    names = {source.name for source in sources}
    # Problems of the last scan and of this preview.
    problems = {(name, path): reason for name, path, reason in home.ledger.problems() if name in names}
    problems |= {(source, problem.path): problem.reason for source, problem in preview.problems}
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
        "sources": [{"name": source.name, "path": str(source.path)} for source in sources],
        "known_documents": living.total(),
        "folders": scan_object(preview)["scan"] | {"waiting": preview.waiting},
        "gone_from_folders": preview.deleted,
        "deleted_waiting_for_a_run": preview.deleted + _still_in_tables(home, known),
        "batches": batches,
        **corpus_numbers(home),
        "serving": {
            stage: {
                "name": state.distinct_name(home.requested_sets[stage]),
                "model": state.model,
                "set": state.set,
            }
            for stage, state in serving_sets(home).items()
        },
        "sets": [switch.as_object() for switch in pending_switches(home)],
        "pdf_engine": engine_object(home.resolved_settings.parsing),
        "rejections": rejections(home),
        "failures": failures(home),
        "problems": [{"source": s, "path": p, "reason": why} for (s, p), why in sorted(problems.items())],
        **({"queue": queue_object(home)} if home.queue.find(Filter(), limit=1) else {}),
    }


def _still_in_tables(home: Home, known: Sequence[Document]) -> int:
    """Count deleted documents that still have rows. A moved document has another id and is not deleted."""
    deleted: dict[str, set[str]] = {}
    for document in known:
        if document.is_deleted():
            deleted.setdefault(document.batch, set()).add(document.doc_id)
    assets = {asset for stage in home.graph for asset in (home.asset(stage), home.serving_asset(stage))}
    count = 0
    for batch, ids in deleted.items():
        footers = [read_footer(home.layout.table(asset, batch)) for asset in assets]
        stored = {doc for footer in footers if footer for doc in (*footer.items, *footer.failures)}
        count += len(ids & stored)
    return count


def checkpoints(home: Home) -> list[dict[str, Any]]:
    """Return each document's last stage, when each stage finished, its attempts, and the last error."""
    attempts = _attempts(home)
    tables = {stage: home.tables(stage, being_built=True) for stage in home.graph}
    done = {stage: table.records for stage, table in tables.items()}
    failed = {stage: table.failures for stage, table in tables.items()}
    rejected = _rejections(home.tables("admission"))
    rows = []
    for document in home.ledger.documents():
        if document.is_deleted():
            continue
        doc_id = document.doc_id
        reached = [stage for stage in done if doc_id in done[stage]]
        errors = [failed[stage][doc_id].error for stage in failed if doc_id in failed[stage]]
        stages = {stage: entry for stage in done if (entry := attempts.get((stage, doc_id)))}
        checkpoint = {
            "doc_id": doc_id,
            "batch": document.batch,
            "stage": reached[-1] if reached else None,
            "is_complete": len(reached) == len(done),
            "finished": {s: entry["finished_at"] for s, entry in stages.items() if entry.get("finished_at")},
            "attempts": {stage: entry["attempts"] for stage, entry in stages.items()},
            "error": f"{errors[-1].code}: {errors[-1].message}" if errors else None,
            "rejected": rejected.get(doc_id),
        }
        rows.append(checkpoint)
    return rows


def _rejections(admission: Table) -> dict[str, str]:
    """Return the reason for each rejected document."""
    if not admission.paths:
        return {}
    rejected = admission.read(lambda rows: rows.filter(~pl.col("admitted")).select("doc_id", "reject_reason"))
    return dict(rejected.iter_rows())


def _attempts(home: Home) -> dict[tuple[str, str], dict[str, Any]]:
    attempts: dict[tuple[str, str], dict[str, Any]] = {}
    for stage in home.graph:
        for row in read_manifest(home.layout.manifest(stage)):
            if row.status == "cancelled":
                continue
            entry = attempts.setdefault((stage, row.item_id), {"attempts": 0})
            entry["attempts"] += 1
            if row.status == "done":
                entry["finished_at"] = row.finished_at
    return attempts
