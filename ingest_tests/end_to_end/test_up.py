"""`ingest up`: what a user sees and does in the web UI, over GraphQL."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ingest_tests.conftest import Command, write_notes
from ingest_tests.end_to_end import webserver
from ingest_tests.end_to_end.webserver import Web

pytestmark = pytest.mark.slow

LINEAGE = {
    "documents": set(),
    "doctags": {"documents"},
    "admission": {"doctags", "documents"},
    "chunks": {"doctags", "admission"},
    "embeddings/dense": {"chunks"},
    "embeddings/lexical": {"chunks", "admission"},
    "lexical_stats": {"embeddings/lexical"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_notes(tmp_path_factory.mktemp("watched"))


@pytest.fixture(scope="module")
def command(tmp_path_factory, folder: Path) -> Command:
    """A home with small batches that scans its folder often."""
    home = tmp_path_factory.mktemp("home")
    toml = f'[batches]\nmax_documents = 2\n[sources.notes]\npath = "{folder}"\n'
    toml += '[execution]\nrun_on = "inline"\n'
    toml += '[automation]\nscan_interval_seconds = 5\n[executors]\nembeddings = "multiprocess"\n'
    (home / "ingest.toml").write_text(toml)
    return Command(home)


@pytest.fixture(scope="module")
def web(command: Command) -> Iterator[Web]:
    """A server whose sensor has ingested the folder: two batches."""
    web = Web(command)
    try:
        web.wait_for(lambda: len(_materialized(web, "embeddings/lexical")) == 2)
        yield web
    finally:
        children = psutil.Process(web.process.pid).children(recursive=True)
        code = web.stop()
    assert code == 0
    assert not [child for child in children if _is_alive(child)]


def _is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def _materialized(web: Web, asset: str) -> list[dict]:
    node = web.ask(webserver.MATERIALIZED, key={"path": asset.split("/")})["assetNodeOrError"]
    return [m for m in node["assetMaterializations"] if m["partition"]]


def _batches(web: Web) -> list[str]:
    return web.ask(webserver.ASSETS)["assetNodes"][0]["partitionKeys"]


def test_the_graph_shows_assets_partitions_checks_and_lineage(web: Web):
    """The UI draws the graph from this."""
    nodes = {"/".join(node["assetKey"]["path"]): node for node in web.ask(webserver.ASSETS)["assetNodes"]}

    lineage = {name: {"/".join(d["path"]) for d in node["dependencyKeys"]} for name, node in nodes.items()}
    assert lineage == LINEAGE
    of_the_corpus = nodes.pop("lexical_stats")
    assert of_the_corpus["partitionKeys"] == []
    assert {check["name"] for check in of_the_corpus["assetChecksOrError"]["checks"]} == {
        "lexical_stats_cover_every_batch"
    }
    for node in nodes.values():
        assert len(node["partitionKeys"]) == 2
        assert node["pools"]
        assert node["opVersion"]
        assert "parquet" in node["kinds"]
        assert node["owners"] == [{"team": "ingest"}]
        assert "dagster/column_schema" in {entry["label"] for entry in node["metadataEntries"]}
        blocking = {check["name"]: check["blocking"] for check in node["assetChecksOrError"]["checks"]}
        assert blocking["every_planned_document_has_a_row"]
        assert blocking["ids_are_unique"]
        assert not blocking["no_document_failed"]
    dense = {check["name"] for check in nodes["embeddings/dense"]["assetChecksOrError"]["checks"]}
    assert {"vectors_are_unit_vectors", "every_chunk_has_a_vector"} <= dense


def test_materializations_have_row_count_schema_and_path(web: Web):
    """For the catalogue."""
    labels = {entry["label"] for entry in _materialized(web, "chunks")[0]["metadataEntries"]}

    wanted = {"dagster/partition_row_count", "dagster/column_schema", "dagster/uri", "size_bytes", "preview"}
    assert wanted <= labels


def test_every_check_has_passed(web: Web):
    """The checks ran with the runs that the sensor requested."""

    def states() -> set[str]:
        found = set()
        for asset in LINEAGE:
            node = web.ask(webserver.CHECKS, key={"path": asset.split("/")})["assetNodeOrError"]
            for check in node["assetChecksOrError"]["checks"]:
                execution = check["executionForLatestMaterialization"]
                found.add(execution["status"] if execution else "NOT YET")
        return found

    web.wait_for(lambda: not states() & {"NOT YET", "IN_PROGRESS"})
    assert states() == {"SUCCEEDED"}


def test_one_partition_launched_in_the_ui_succeeds(web: Web):
    """Materialize one batch of the whole graph."""
    status = web.launch("ingest_all", _batches(web)[0], [name.split("/") for name in LINEAGE])

    assert status == "SUCCESS"


def test_a_stage_job_with_its_own_executor_succeeds(web: Web):
    """Steps run in separate processes; the end of one does not mean that the run is dead."""
    assert web.launch("embeddings_only", _batches(web)[0], [["embeddings", "lexical"]]) == "SUCCESS"


def test_a_backfill_of_chunks_over_all_partitions_succeeds(web: Web):
    """One run per batch, requested by the daemon."""
    before = len(_materialized(web, "chunks"))
    keys = _batches(web)

    answers = web.ask(webserver.BACKFILL, assets=[{"path": ["chunks"]}], batches=keys)
    answer = answers["launchPartitionBackfill"]

    assert answer["__typename"] == "LaunchBackfillSuccess", answer

    def state() -> dict:
        return web.ask(webserver.BACKFILL_STATE, id=answer["backfillId"])["partitionBackfillOrError"]

    web.wait_for(lambda: state()["status"] in {"COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED"})
    assert state() == {"status": "COMPLETED_SUCCESS", "numPartitions": len(keys)}
    assert len(_materialized(web, "chunks")) == before + len(keys)


def test_a_new_file_becomes_a_new_batch_automatically(web: Web, folder: Path):
    """The sensor does it. This test runs last: it adds a partition."""
    (folder / "late.md").write_text("# Late\n\nA late swarm in July is not worth a fly.\n", encoding="utf-8")

    web.wait_for(lambda: len({m["partition"] for m in _materialized(web, "embeddings/dense")}) == 3)


def test_a_second_up_on_the_same_home_is_refused_in_one_line(web: Web, command: Command):
    """Two daemons on one home would start runs twice."""
    done = command.apart("up", "--port", web.port, check=2)

    assert done.stderr.strip() == f"ingest: `ingest up` is already running for {command.home}; stop it first."
