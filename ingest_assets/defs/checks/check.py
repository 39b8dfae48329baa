"""One check of a table, and all checks of a table as one step: a step for each costs more than looking."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home
from ingest_assets.defs.partitions import batches
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.model.errors import TableDamaged

# Partitioned checks are a preview of Dagster: results per batch are worth it, a warning on each start is not.
warnings.filterwarnings(
    "ignore", category=dg.PreviewWarning, message=".*partitions_def on an AssetCheckSpec.*"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; `metadata` is shown in the web UI, its `first` by the command line as well."""

    passed: bool
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """A true sentence about a stage's table of one batch.

    A blocking one that fails keeps the stages below from running; one that warns never fails a run.
    """

    name: str
    description: str
    look: Callable[[Home, str, str], Finding]  # home, stage, batch
    blocking: bool = True
    warns: bool = False
    also_reads: tuple[str, ...] = ()


def found(offenders: Sequence[str], **numbers: int) -> Finding:
    """Passed when there are none."""
    shown = ", ".join(offenders[:5]) or "none"
    return Finding(not offenders, {"offenders": len(offenders), "first": shown, **numbers})


def listing(lines: Sequence[str]) -> dg.MarkdownMetadataValue:
    """A list for the web UI."""
    return dg.MetadataValue.md("\n".join(f"- {line}" for line in lines) or "none")


def definition_of(stage: str, checks: Sequence[Check]) -> dg.AssetChecksDefinition:
    """All checks of a stage's table; any of them can be run alone from the web UI."""
    asset = GRAPH[stage].asset_key

    @dg.multi_asset_check(
        name=f"checks_of_{stage}", specs=[_spec(asset, check) for check in checks], can_subset=True
    )
    def look(context: dg.AssetCheckExecutionContext, home: HomeResource) -> Iterator[dg.AssetCheckResult]:
        here, wanted = home.open(), {key.name for key in context.selected_asset_check_keys}
        for check in checks:
            if check.name in wanted:
                finding = _looked(check, here, stage, context.partition_key)
                yield dg.AssetCheckResult(
                    asset_key=asset,
                    check_name=check.name,
                    passed=finding.passed,
                    severity=dg.AssetCheckSeverity.WARN if check.warns else dg.AssetCheckSeverity.ERROR,
                    metadata=finding.metadata,
                )

    return look


def _looked(check: Check, home: Home, stage: str, batch: str) -> Finding:
    """Nothing is true of a table that cannot be read."""
    try:
        return check.look(home, stage, batch)
    except TableDamaged as damaged:
        return found([str(damaged)])


def _spec(asset: dg.AssetKey, check: Check) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        check.name,
        asset=asset,
        description=check.description,
        blocking=check.blocking,
        additional_deps=[GRAPH[stage].asset_key for stage in check.also_reads],
        partitions_def=batches,
    )
