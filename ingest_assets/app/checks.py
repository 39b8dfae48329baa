"""Checks of a batch's tables, and the predicates behind them, which return the offending ids.

A check of a single table is defined by its stage (`Stage.checks`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import polars as pl

from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home
from ingest_assets.core.errors import TableDamaged
from ingest_assets.core.items import WorkItem, is_current
from ingest_assets.stages.admission.stage import Verdicts
from ingest_assets.stages.base import Finding, TableCheck
from ingest_assets.storage.model_sets import UNKNOWN
from ingest_assets.storage.table import Table, detect_damaged_tables


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a stage's table of one batch.

    A failed blocking check stops the downstream stages; one with `warns` never fails a run.
    """

    name: str
    description: str
    evaluate: Callable[[Home, str, str], Finding]  # home, stage, batch
    blocking: bool = True
    warns: bool = False
    also_reads: tuple[str, ...] = ()


def checks_of(stage: str) -> list[Check]:
    """Return the checks of a stage's table: common ones, those of embeddings, and those of the stage."""
    node = GRAPH[stage]
    return [
        *COMMON_CHECKS,
        *([every_chunk_has_a_vector] if node.step == "embeddings" else []),
        *([every_table_is_of_one_model] if node.has_sets else []),
        *STAGE_CHECKS.get(stage, ()),
        *(
            Check(
                check.name, check.description, partial(_run_table_check, check), check.blocking, check.warns
            )
            for check in node.stage.checks
        ),
    ]


def _run_table_check(check: TableCheck, home: Home, stage: str, batch: str) -> Finding:
    return check.evaluate(home.stages[stage], home.table(stage, batch))


def run_check(check: Check, home: Home, stage: str, batch: str) -> Finding:
    """Run a check; a damaged table fails every check."""
    try:
        return check.evaluate(home, stage, batch)
    except TableDamaged as damaged:
        return Finding.of([str(damaged)])


def items_without_rows(items: Iterable[WorkItem], table: Table) -> list[str]:
    """Return planned items that are neither done (by the predicate of resume) nor recorded as failed."""
    records, failures = table.records, table.failures
    missing = []
    for item in items:
        failure = failures.get(item.item_id)
        has_failed = failure is not None and failure.fingerprint == item.fingerprint
        if not has_failed and not is_current(records.get(item.item_id), item.fingerprint):
            missing.append(item.item_id)
    return missing


def repeated_keys(table: Table, key: str) -> list[str]:
    """Return the values of a key column that occur in more than one row."""
    counts = table.read(lambda rows: rows.group_by(key).agg(pl.len().alias("n")).filter(pl.col("n") > 1))
    return counts[key].sort().to_list()


def chunks_without_vector(chunks: Table, vectors: Table) -> tuple[list[str], list[str]]:
    """Return chunks without a vector (except of failed documents), and vectors without a chunk."""
    is_excused = pl.col("doc_id").is_in(list(vectors.failures))
    chunk_ids = set(chunks.read(lambda rows: rows.filter(~is_excused).select("chunk_id")).to_series())
    vector_ids = set(vectors.read(lambda rows: rows.select("chunk_id")).to_series())
    return sorted(chunk_ids - vector_ids), sorted(vector_ids - chunk_ids)


def documents_without_verdict(doctags: Table, admission: Table) -> list[str]:
    """Return converted documents without a verdict or failure, and verdicts on unknown documents."""
    answered = admission.records.keys() | admission.failures.keys()
    return sorted(doctags.records.keys() ^ answered)


def texts_admitted_twice(batch: Table, corpus: Table) -> list[list[str]]:
    """Return the document ids of each text of the batch that is admitted more than once in the corpus."""
    admitted = pl.col("admitted")
    texts = batch.scan().filter(admitted).select("text_hash").unique()
    copies = corpus.scan().filter(admitted).join(texts, on="text_hash", how="semi")
    by_text = copies.group_by("text_hash").agg(pl.col("doc_id").sort())
    repeated = by_text.filter(pl.col("doc_id").list.len() > 1)
    with detect_damaged_tables(batch, corpus):
        return sorted(repeated.collect()["doc_id"].to_list())


def tables_of_another_set(table: Table) -> list[str]:
    """Return the files of a family whose model set differs from that of most of its files."""
    sets = {path: footer.extra.get("set", UNKNOWN) for path, footer in table.footers.items()}
    usual = Counter(sets.values()).most_common(1)
    return [f"{table.asset}/{path.name}" for path, set_id in sets.items() if set_id != usual[0][0]]


def _planned_without_row(home: Home, stage: str, batch: str) -> Finding:
    items, table = home.plan(stage, batch), home.table(stage, batch)
    missing = items_without_rows(items, table)
    if not GRAPH[stage].reads or GRAPH[stage].stage.compares_documents:
        # Files that changed after the table was written are the next run's work, not an error.
        later = (table.records.keys() | table.failures.keys()) & set(missing)
        items = [item for item in items if item.item_id not in later]
        missing = [item for item in missing if item not in later]
    return Finding.of(missing, planned=len(items))


def _repeated_ids(home: Home, stage: str, batch: str) -> Finding:
    return Finding.of(repeated_keys(home.table(stage, batch), GRAPH[stage].table.key[0]))


def _failed_documents(home: Home, stage: str, batch: str) -> Finding:
    failed = {item: failure.error for item, failure in home.table(stage, batch).failures.items()}
    shown = [f"`{item}` {error.code}: {error.message}" for item, error in list(failed.items())[:50]]
    return Finding(not failed, {"failed": len(failed), "documents": shown})


def _unpaired_chunks(home: Home, stage: str, batch: str) -> Finding:
    missing, stray = chunks_without_vector(home.table("chunks", batch), home.table(stage, batch))
    return Finding.of(missing + stray, missing=len(missing), stray=len(stray))


def _other_models(home: Home, stage: str, batch: str) -> Finding:
    tables = [home.tables(stage), home.tables(stage, being_built=True)]
    return Finding.of(sorted({name for table in tables for name in tables_of_another_set(table)}))


def _without_verdict(home: Home, stage: str, batch: str) -> Finding:
    read, judged = home.table("doctags", batch), home.table(stage, batch)
    verdicts = Verdicts.in_table(judged)
    return Finding.of(
        documents_without_verdict(read, judged),
        read=len(read.records),
        admitted=verdicts.admitted,
        rejected=verdicts.rejected,
    )


def _admitted_twice(home: Home, stage: str, batch: str) -> Finding:
    repeated = texts_admitted_twice(home.table(stage, batch), home.tables(stage))
    shown = [" and ".join(f"`{doc_id}`" for doc_id in ids) for ids in repeated[:20]]
    return Finding(not repeated, {"texts": len(repeated), "documents": shown})


def _share_rejected(home: Home, stage: str, batch: str) -> Finding:
    verdicts = Verdicts.in_table(home.table(stage, batch))
    share = verdicts.rejected / verdicts.read if verdicts.read else 0.0
    limit = home.settings.admission.warn_rejected_share
    top = ", ".join(f"{reason} ({count})" for reason, count in verdicts.reasons.most_common(5))
    metadata = {"rejected_share": round(share, 4), "limit": limit, "reasons": top or "none"}
    return Finding(share <= limit, metadata)


COMMON_CHECKS = (
    Check(
        "every_planned_document_has_a_row",
        "Each planned document has rows with its current fingerprint, or a recorded failure.",
        _planned_without_row,
    ),
    Check("ids_are_unique", "No id occurs in two rows.", _repeated_ids),
    Check(
        "no_document_failed",
        "No document of this batch failed. A warning only: the other documents are complete.",
        _failed_documents,
        blocking=False,
        warns=True,
    ),
)
every_chunk_has_a_vector = Check(
    "every_chunk_has_a_vector",
    "Each chunk has a vector, and each vector has a chunk. Search cannot find a chunk without a vector.",
    _unpaired_chunks,
    also_reads=("chunks",),
)
every_table_is_of_one_model = Check(
    "every_table_is_of_one_model",
    "All serving tables of a family are of one model set, and so are all tables being built.",
    _other_models,
    blocking=False,
)
STAGE_CHECKS: Mapping[str, tuple[Check, ...]] = {
    "admission": (
        Check(
            "read_is_admitted_plus_rejected",
            "Each converted document is either admitted, or rejected with a reason.",
            _without_verdict,
            also_reads=("doctags",),
        ),
        Check(
            "no_text_is_admitted_twice",
            "No text of this batch is admitted twice in the corpus; if one is, a batch still has to run.",
            _admitted_twice,
            blocking=False,
            warns=True,
        ),
        Check(
            "few_documents_are_rejected",
            "The share of rejected documents is within admission.warn_rejected_share.",
            _share_rejected,
            blocking=False,
            warns=True,
        ),
    ),
}
