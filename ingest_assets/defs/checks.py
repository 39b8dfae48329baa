"""The checks of `app/checks.py` as Dagster asset checks: all checks of a table are one step."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from ingest_assets.app.checks import Check, checks_of, run_check
from ingest_assets.defs.keys import asset_key, batches
from ingest_assets.defs.resources import HomeResource

# Dagster warns on each start that partitioned checks are a preview; they are needed for results per batch.
warnings.filterwarnings(
    "ignore", category=dg.PreviewWarning, message=".*partitions_def on an AssetCheckSpec.*"
)


def table_checks(graph: Iterable[str]) -> list[dg.AssetChecksDefinition]:
    """Return the checks of all tables of a graph."""
    return [definition_of(stage, checks_of(stage)) for stage in graph]


def definition_of(stage: str, checks: Sequence[Check]) -> dg.AssetChecksDefinition:
    """Return all checks of a stage's table; each can be run separately from the web UI."""
    asset = asset_key(stage)

    @dg.multi_asset_check(
        name=f"checks_of_{stage}", specs=[_spec(asset, check) for check in checks], can_subset=True
    )
    def evaluate(context: dg.AssetCheckExecutionContext, home: HomeResource) -> Iterator[dg.AssetCheckResult]:
        opened, selected = home.open(), {key.name for key in context.selected_asset_check_keys}
        for check in checks:
            if check.name in selected:
                finding = run_check(check, opened, stage, context.partition_key)
                yield dg.AssetCheckResult(
                    asset_key=asset,
                    check_name=check.name,
                    passed=finding.passed,
                    severity=dg.AssetCheckSeverity.WARN if check.warns else dg.AssetCheckSeverity.ERROR,
                    metadata=_shown(finding.metadata),
                )

    return evaluate


def _spec(asset: dg.AssetKey, check: Check) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        check.name,
        asset=asset,
        description=check.description,
        blocking=check.blocking,
        additional_deps=[asset_key(stage) for stage in check.also_reads],
        partitions_def=batches,
    )


def _shown(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Render lists as Markdown lists for the web UI."""
    return {
        name: dg.MetadataValue.md("\n".join(f"- {line}" for line in value) or "none")
        if isinstance(value, list)
        else value
        for name, value in metadata.items()
    }
