"""The checks of every table, made alike for each stage, and those of the vectors."""

import warnings
from collections.abc import Mapping, Sequence

import dagster as dg
import polars as pl

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
from ingest_assets.defs.partitions import batches
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.defs.verdicts import verdicts_in
from ingest_assets.storage.tables import Table

# Partitioned checks are a preview of Dagster: results per batch are worth it, a warning on each start is not.
warnings.filterwarnings(
    "ignore", category=dg.PreviewWarning, message=".*partitions_def on an AssetCheckSpec.*"
)


def _table(home: HomeResource, stage: str, context: dg.AssetCheckExecutionContext) -> Table:
    return home.open().table(stage, context.partition_key)


def _every_planned_document_has_a_row(stage: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=GRAPH[stage].asset_key,
        name="every_planned_document_has_a_row",
        blocking=True,
        partitions_def=batches,
        description="Each planned document has rows of its current fingerprint, or a recorded failure.",
    )
    def check(context: dg.AssetCheckExecutionContext, home: HomeResource) -> dg.AssetCheckResult:
        items, table = home.open().plan(stage, context.partition_key), _table(home, stage, context)
        if not GRAPH[stage].reads or GRAPH[stage].weighs:
            items = without_later_changes(items, table)
        return _result(items_without_rows(items, table), planned=len(items))

    return check


def _ids_are_unique(stage: str) -> dg.AssetChecksDefinition:
    key = GRAPH[stage].table.key[0]

    @dg.asset_check(
        asset=GRAPH[stage].asset_key,
        name="ids_are_unique",
        blocking=True,
        partitions_def=batches,
        description=f"No {key} stands in two rows.",
    )
    def check(context: dg.AssetCheckExecutionContext, home: HomeResource) -> dg.AssetCheckResult:
        return _result(repeated_keys(_table(home, stage, context), key))

    return check


def _no_document_failed(stage: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=GRAPH[stage].asset_key,
        name="no_document_failed",
        blocking=False,
        partitions_def=batches,
        description="Documents that failed in this batch, with reasons. A warning: the others are fine.",
    )
    def check(context: dg.AssetCheckExecutionContext, home: HomeResource) -> dg.AssetCheckResult:
        lines = failure_lines(_table(home, stage, context))
        text = "\n".join(f"- `{item}` {reason}" for item, reason in list(lines.items())[:50])
        return dg.AssetCheckResult(
            passed=not lines,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"failed": len(lines), "documents": dg.MetadataValue.md(text or "none")},
        )

    return check


def _every_chunk_has_a_vector(stage: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=GRAPH[stage].asset_key,
        name="every_chunk_has_a_vector",
        blocking=True,
        partitions_def=batches,
        additional_deps=[GRAPH["chunks"].asset_key],
        description="A chunk without a vector cannot be found; a vector without a chunk is found in vain.",
    )
    def check(context: dg.AssetCheckExecutionContext, home: HomeResource) -> dg.AssetCheckResult:
        missing, stray = chunks_without_vector(_table(home, "chunks", context), _table(home, stage, context))
        return _result(missing + stray, missing=len(missing), stray=len(stray))

    return check


def _every_table_is_of_one_model(stage: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=GRAPH[stage].asset_key,
        name="every_table_is_of_one_model",
        blocking=False,
        partitions_def=batches,
        description="All tables that readers see are of one set, and so are those that are being made.",
    )
    def check(home: HomeResource) -> dg.AssetCheckResult:
        here = home.open()
        places = [here.tables(stage), here.tables(stage, in_the_making=True)]
        return _result(sorted({name for table in places for name in tables_of_another_set(table)}))

    return check


@dg.asset_check(
    asset=GRAPH["dense"].asset_key,
    blocking=True,
    partitions_def=batches,
    description="Vectors have the model's dimension, no NaN, and unit length unless the settings leave it.",
)
def vectors_are_unit_vectors(
    context: dg.AssetCheckExecutionContext, home: HomeResource
) -> dg.AssetCheckResult:
    stage = home.open().stages["dense"]
    dim, is_unit = stage.spec.schema.field("vector").type.list_size, stage.footer()["normalized"] == "true"
    faults = faulty_vectors(_table(home, "dense", context), dim, is_unit=is_unit)
    return dg.AssetCheckResult(
        passed=faults.is_empty(),
        metadata={
            "dimension": faults.dimension or f"{dim}, as declared",
            "not_finite": len(faults.not_finite),
            "not_unit": len(faults.not_unit),
            "first": ", ".join((faults.not_finite + faults.not_unit)[:5]) or "none",
        },
    )


@dg.asset_check(
    asset=GRAPH["sparse"].asset_key,
    blocking=True,
    partitions_def=batches,
    description="Weights are finite and above zero, one per entry, and entries ascend within the vocabulary.",
)
def weights_are_positive_numbers(
    context: dg.AssetCheckExecutionContext, home: HomeResource
) -> dg.AssetCheckResult:
    here = home.open()
    dim = int(here.stages["sparse"].footer()["dim"])
    table = _table(home, "sparse", context)
    empty = table.scan().filter(pl.col("indices").list.len() == 0).select(pl.len()).collect().item()
    return _result(faulty_weights(table, dim), without_entries=empty)


@dg.asset_check(
    asset=GRAPH["admission"].asset_key,
    blocking=True,
    partitions_def=batches,
    additional_deps=[GRAPH["doctags"].asset_key],
    description="Every converted document is either admitted or rejected, with a reason.",
)
def read_is_admitted_plus_rejected(
    context: dg.AssetCheckExecutionContext, home: HomeResource
) -> dg.AssetCheckResult:
    read, judged = _table(home, "doctags", context), _table(home, "admission", context)
    found = verdicts_in(judged)
    return _result(
        documents_without_verdict(read, judged),
        read=len(read.records),
        admitted=found.admitted,
        rejected=found.rejected,
    )


@dg.asset_check(
    asset=GRAPH["admission"].asset_key,
    blocking=False,
    partitions_def=batches,
    description="No text of this batch is admitted twice in the corpus; if one is, a batch waits to run.",
)
def no_text_is_admitted_twice(
    context: dg.AssetCheckExecutionContext, home: HomeResource
) -> dg.AssetCheckResult:
    repeated = texts_admitted_twice(_table(home, "admission", context), home.open().tables("admission"))
    text = "\n".join(f"- {' and '.join(f'`{each}`' for each in ids)}" for ids in repeated[:20])
    return dg.AssetCheckResult(
        passed=not repeated,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"texts": len(repeated), "documents": dg.MetadataValue.md(text or "none")},
    )


@dg.asset_check(
    asset=GRAPH["admission"].asset_key,
    blocking=False,
    partitions_def=batches,
    description="Not more documents are rejected than admission.warn_rejected_share allows.",
)
def few_documents_are_rejected(
    context: dg.AssetCheckExecutionContext, home: HomeResource
) -> dg.AssetCheckResult:
    found = verdicts_in(_table(home, "admission", context))
    share = found.rejected / found.read if found.read else 0.0
    limit = home.open().settings.admission.warn_rejected_share
    top = ", ".join(f"{reason} ({count})" for reason, count in found.reasons.most_common(5))
    return dg.AssetCheckResult(
        passed=share <= limit,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"rejected_share": round(share, 4), "limit": limit, "reasons": top or "none"},
    )


def _result(offenders: Sequence[str], **numbers: int) -> dg.AssetCheckResult:
    shown = ", ".join(offenders[:5]) or "none"
    return dg.AssetCheckResult(
        passed=not offenders, metadata={"offenders": len(offenders), "first": shown, **numbers}
    )


def checks_of(graph: Mapping[str, Node]) -> list[dg.AssetChecksDefinition]:
    """The checks of the tables that a graph makes."""
    of_every_table = (_every_planned_document_has_a_row, _ids_are_unique, _no_document_failed)
    families = [stage for stage, node in graph.items() if node.step == "embeddings"]
    return [
        *(make(stage) for stage in graph for make in of_every_table),
        *(_every_chunk_has_a_vector(stage) for stage in families),
        *([weights_are_positive_numbers] if "sparse" in graph else []),
        *(_every_table_is_of_one_model(stage) for stage, node in graph.items() if node.has_sets),
        vectors_are_unit_vectors,
        read_is_admitted_plus_rejected,
        no_text_is_admitted_twice,
        few_documents_are_rejected,
    ]
