"""Every stage of the graph has an asset, settings and a job."""

import dagster as dg
import pytest

from ingest_assets.app.graph import GRAPH, STEPS, graph_of
from ingest_assets.app.home import Home
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.keys import asset_key
from ingest_assets.settings.tree import ExecutorSettings, PoolSettings, Settings, StagesSettings


@pytest.fixture
def assets(home: Home) -> dict[dg.AssetKey, dg.AssetsDefinition]:
    """Return the assets in Dagster, by key."""
    found = build_definitions().resolve_asset_graph().assets_defs
    of_batches = [asset for asset in found if asset.is_executable and asset.partitions_def is not None]
    return {asset.key: asset for asset in of_batches if not asset.check_keys}


def test_every_stage_comes_after_its_inputs():
    """Plans and completeness go through the graph once, from the top."""
    names = list(GRAPH)

    assert all(names.index(above) < names.index(stage) for stage in GRAPH for above in GRAPH[stage].reads)


def test_a_stage_has_the_name_and_the_table_of_its_node():
    """Manifests and fingerprints use the name, files the table."""
    graph = {"sparse": GRAPH["sparse"], **graph_of(Settings())}
    stages = {stage: node.make(Settings()) for stage, node in graph.items()}

    assert {name: stage.name for name, stage in stages.items()} == {stage: stage for stage in GRAPH}
    assert {name: stage.spec for name, stage in stages.items()} == {
        stage: node.table for stage, node in GRAPH.items()
    }
    assert len({node.table.asset for node in GRAPH.values()}) == len(GRAPH)


def test_every_table_has_the_document_of_each_row():
    """`ingest inspect` needs it."""
    assert all("doc_id" in node.table.schema.names for node in GRAPH.values())
    assert all(set(node.table.descriptions) == set(node.table.schema.names) for node in GRAPH.values())


def test_every_stage_is_an_asset_that_reads_what_the_graph_says(assets):
    """The lineage in the UI is the one that plans and locks use."""
    usual = graph_of(Settings())
    lineage = {key: set(asset.asset_deps[key]) for key, asset in assets.items()}

    assert lineage == {
        asset_key(stage): {asset_key(above) for above in node.reads} for stage, node in usual.items()
    }


def test_an_assets_code_version_is_its_stages_version(assets):
    """A raised version must show in the web UI."""
    usual = graph_of(Settings())
    versions = {key: asset.code_versions_by_key[key] for key, asset in assets.items()}

    assert versions == {asset_key(stage): node.make(Settings()).version for stage, node in usual.items()}


def test_every_pool_has_a_limit_in_the_settings(assets):
    """A pool without a limit in the settings would run one step at a time."""
    assert {asset.op.pool for asset in assets.values()} <= set(PoolSettings.model_fields)


def test_every_stage_has_options_and_every_step_an_executor():
    """The settings do not import the graph, so a new stage must be added to both."""
    assert set(StagesSettings.model_fields) <= set(GRAPH)
    assert set(ExecutorSettings.model_fields) == {"all", *STEPS}
    assert {node.step for node in GRAPH.values()} == set(STEPS)
