"""The checks of every table, made alike for each stage, and those of single ones."""

from collections.abc import Mapping

import dagster as dg
import polars as pl

from ingest_assets.defs.checks.check import Check, Finding, definition_of, found, listing
from ingest_assets.defs.checks.predicates import (
    chunks_without_vector,
    documents_without_verdict,
    failure_lines,
    faulty_vectors,
    faulty_weights,
    items_without_rows,
    repeated_keys,
    tables_of_another_set,
    texts_admitted_twice,
    without_later_changes,
)
from ingest_assets.defs.graph import GRAPH, Node
from ingest_assets.defs.home import Home
from ingest_assets.defs.verdicts import verdicts_in


def checks_of(graph: Mapping[str, Node]) -> list[dg.AssetChecksDefinition]:
    """The checks of the tables that a graph makes."""
    return [definition_of(stage, _of_stage(stage, node)) for stage, node in graph.items()]


def _of_stage(stage: str, node: Node) -> list[Check]:
    return [
        *OF_EVERY_TABLE,
        *([every_chunk_has_a_vector] if node.step == "embeddings" else []),
        *([every_table_is_of_one_model] if node.has_sets else []),
        *OF_STAGE.get(stage, ()),
    ]


def _planned_without_row(home: Home, stage: str, batch: str) -> Finding:
    items, table = home.plan(stage, batch), home.table(stage, batch)
    if not GRAPH[stage].reads or GRAPH[stage].weighs:
        items = without_later_changes(items, table)
    return found(items_without_rows(items, table), planned=len(items))


def _repeated_ids(home: Home, stage: str, batch: str) -> Finding:
    return found(repeated_keys(home.table(stage, batch), GRAPH[stage].table.key[0]))


def _failed_documents(home: Home, stage: str, batch: str) -> Finding:
    lines = failure_lines(home.table(stage, batch))
    shown = [f"`{item}` {reason}" for item, reason in list(lines.items())[:50]]
    return Finding(not lines, {"failed": len(lines), "documents": listing(shown)})


def _unpaired_chunks(home: Home, stage: str, batch: str) -> Finding:
    missing, stray = chunks_without_vector(home.table("chunks", batch), home.table(stage, batch))
    return found(missing + stray, missing=len(missing), stray=len(stray))


def _other_models(home: Home, stage: str, batch: str) -> Finding:
    places = [home.tables(stage), home.tables(stage, in_the_making=True)]
    return found(sorted({name for table in places for name in tables_of_another_set(table)}))


def _odd_vectors(home: Home, stage: str, batch: str) -> Finding:
    recipe = home.stages[stage]
    dim, is_unit = recipe.spec.schema.field("vector").type.list_size, recipe.footer()["normalized"] == "true"
    faults = faulty_vectors(home.table(stage, batch), dim, is_unit=is_unit)
    metadata = {
        "dimension": faults.dimension or f"{dim}, as declared",
        "not_finite": len(faults.not_finite),
        "not_unit": len(faults.not_unit),
        "first": ", ".join((faults.not_finite + faults.not_unit)[:5]) or "none",
    }
    return Finding(faults.is_empty(), metadata)


def _odd_weights(home: Home, stage: str, batch: str) -> Finding:
    dim, table = int(home.stages[stage].footer()["dim"]), home.table(stage, batch)
    empty = table.read(lambda rows: rows.filter(pl.col("indices").list.len() == 0).select(pl.len())).item()
    return found(faulty_weights(table, dim), without_entries=empty)


def _without_verdict(home: Home, stage: str, batch: str) -> Finding:
    read, judged = home.table("doctags", batch), home.table(stage, batch)
    verdicts = verdicts_in(judged)
    return found(
        documents_without_verdict(read, judged),
        read=len(read.records),
        admitted=verdicts.admitted,
        rejected=verdicts.rejected,
    )


def _admitted_twice(home: Home, stage: str, batch: str) -> Finding:
    repeated = texts_admitted_twice(home.table(stage, batch), home.tables(stage))
    shown = [" and ".join(f"`{each}`" for each in ids) for ids in repeated[:20]]
    return Finding(not repeated, {"texts": len(repeated), "documents": listing(shown)})


def _share_rejected(home: Home, stage: str, batch: str) -> Finding:
    verdicts = verdicts_in(home.table(stage, batch))
    share = verdicts.rejected / verdicts.read if verdicts.read else 0.0
    limit = home.settings.admission.warn_rejected_share
    top = ", ".join(f"{reason} ({count})" for reason, count in verdicts.reasons.most_common(5))
    metadata = {"rejected_share": round(share, 4), "limit": limit, "reasons": top or "none"}
    return Finding(share <= limit, metadata)


OF_EVERY_TABLE = (
    Check(
        "every_planned_document_has_a_row",
        "Each planned document has rows of its current fingerprint, or a recorded failure.",
        _planned_without_row,
    ),
    Check("ids_are_unique", "No id stands in two rows.", _repeated_ids),
    Check(
        "no_document_failed",
        "Documents that failed in this batch, with reasons. A warning: the others are fine.",
        _failed_documents,
        blocking=False,
        warns=True,
    ),
)
every_chunk_has_a_vector = Check(
    "every_chunk_has_a_vector",
    "A chunk without a vector cannot be found; a vector without a chunk is found in vain.",
    _unpaired_chunks,
    also_reads=("chunks",),
)
every_table_is_of_one_model = Check(
    "every_table_is_of_one_model",
    "All tables that readers see are of one set, and so are those that are being made.",
    _other_models,
    blocking=False,
)
OF_STAGE: Mapping[str, tuple[Check, ...]] = {
    "admission": (
        Check(
            "read_is_admitted_plus_rejected",
            "Every converted document is either admitted or rejected, with a reason.",
            _without_verdict,
            also_reads=("doctags",),
        ),
        Check(
            "no_text_is_admitted_twice",
            "No text of this batch is admitted twice in the corpus; if one is, a batch waits to run.",
            _admitted_twice,
            blocking=False,
            warns=True,
        ),
        Check(
            "few_documents_are_rejected",
            "Not more documents are rejected than admission.warn_rejected_share allows.",
            _share_rejected,
            blocking=False,
            warns=True,
        ),
    ),
    "dense": (
        Check(
            "vectors_are_unit_vectors",
            "Vectors have the model's dimension, no NaN, and unit length unless the settings leave it.",
            _odd_vectors,
        ),
    ),
    "sparse": (
        Check(
            "weights_are_positive_numbers",
            "Weights are finite and above zero, one per entry, and entries ascend within the vocabulary.",
            _odd_weights,
        ),
    ),
}
