"""Behaviour of clusters only: lost actors and nodes, missing resources, remote addresses."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from ray.cluster_utils import Cluster

from ingest_assets.backends import open_backend, workers_for
from ingest_assets.backends import ray as ray_cluster
from ingest_assets.backends.ray import RayBackend
from ingest_assets.core.errors import ConfigError, IngestError
from ingest_assets.core.items import Plan, WorkItem
from ingest_assets.runner import Manifest, QuietHooks, RunSpec, read_manifest, run_stage
from ingest_assets.settings.execution import ExecutionOptions, StageOptions
from ingest_tests.backends.ended import all_gone
from ingest_tests.ray_nodes import two_worker_nodes
from ingest_tests.runner.fakes import adds_up, plan_of
from ingest_tests.runner.workers import announced, by_name, job


class AtItem(QuietHooks):
    """Calls a function before a certain item starts."""

    def __init__(self, item_id: str, action: Callable[[], None]) -> None:
        self._item_id, self._action = item_id, action

    def before_item(self, item: WorkItem) -> None:
        """Call the function if it is this item."""
        if item.item_id == self._item_id:
            self._action()


@pytest.fixture
def two_nodes():
    """A cluster, and its two nodes with one core each."""
    with two_worker_nodes() as cluster_and_nodes:
        yield cluster_and_nodes


@pytest.fixture
def head():
    """The address of a cluster with one node of two cores."""
    ray_cluster.disconnect()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    yield cluster.address
    ray_cluster.disconnect()
    cluster.shutdown()


@pytest.mark.chaos
def test_a_killed_node_costs_an_attempt_and_no_item(two_nodes, tmp_path):
    """Half of the workers are lost in the middle of the stage; each item still finishes exactly once."""
    cluster, nodes = two_nodes
    options = StageOptions(policy="cpu", execution=ExecutionOptions(backend="ray", address=cluster.address))
    workers, reason = workers_for(options)
    lines: list[str] = []
    backend = open_backend(options, workers, (), lines.append)
    manifest = Manifest(tmp_path / "manifest.jsonl")
    killer = AtItem("sleep-10", lambda: cluster.remove_node(nodes[0], allow_graceful=False))
    plan = plan_of(*["sleep"] * 40, meta={"seconds": 0.3})
    outcome = run_stage(RunSpec(plan, by_name, options, killer, backend=backend, manifest=manifest))

    assert (workers, reason.split(",")[0]) == (2, "2: 2 cores")
    assert (outcome.succeeded, outcome.failed, outcome.cancelled) == (40, 0, 0)
    rows = list(read_manifest(manifest.path))
    assert Counter(row.item_id for row in rows if row.status == "done") == dict.fromkeys(
        (f"sleep-{number}" for number in range(40)), 1
    )
    lost = [row for row in rows if row.status == "failed"]
    assert lost
    assert {row.error["code"] for row in lost if row.error} == {"E_WORKER_LOST"}
    assert any("is lost" in line for line in lines)


@pytest.mark.slow
def test_an_existing_cluster_is_used_by_its_address(head):
    """Addresses of Ray Client are experimental and tested by hand: its server does not always start."""
    execution = ExecutionOptions(backend="ray", address=head)
    options = StageOptions(policy="cpu", per_item_timeout_s=2, execution=execution)
    workers, _ = workers_for(options)
    backend = open_backend(options, workers, ["ingest_tests.runner.workers"], lambda line: None)
    outcome = run_stage(
        RunSpec(plan_of("ok", "kill", "stuck", *["ok"] * 5), by_name, options, backend=backend)
    )

    assert (outcome.succeeded, outcome.failed) == (6, 2)
    assert [error.code for error in outcome.errors] == ["E_WORKER_DIED", "E_TIMEOUT"]


@pytest.mark.chaos
def test_a_killed_actor_costs_an_attempt_and_no_item(cluster, tmp_path):
    """No retries are configured, and none is used: the item did not cause the loss."""
    backend = RayBackend(1, num_cpus=0)
    manifest = Manifest(tmp_path / "manifest.jsonl")
    item = WorkItem("sleep-1", "f", output_paths=(str(tmp_path / "sleep-1"),), meta={"seconds": 1})
    killer = threading.Thread(target=_kill_actor_of, args=(tmp_path / "sleep-1.started",))
    killer.start()
    options = StageOptions(retry_backoff_s=0.1)
    outcome = run_stage(
        RunSpec(Plan("stage", [item]), announced, options, backend=backend, manifest=manifest)
    )
    killer.join()

    assert (outcome.succeeded, outcome.failed, outcome.retries) == (1, 0, 1)
    attempts = [(row.attempt_no, row.status) for row in read_manifest(manifest.path)]
    assert attempts == [(1, "failed"), (2, "done")]


@pytest.mark.chaos
def test_a_worker_killed_while_idle_fails_no_item(cluster):
    """The next item gets a new process."""
    backend = RayBackend(1, num_cpus=0)
    try:
        first = backend.get_result(backend.submit(job("pid-1")), 60)
        os.kill(first.counts["pid"], signal.SIGKILL)
        second = backend.get_result(backend.submit(job("pid-2")), 60)
    finally:
        backend.close(0)

    assert second.counts["pid"] != first.counts["pid"]


@pytest.mark.slow
def test_the_output_of_workers_is_collected(cluster, capfd):
    """It is written to the step's log, and not to standard output."""
    lines: list[str] = []
    backend = RayBackend(1, num_cpus=0, say=lines.append)
    run_stage(RunSpec(plan_of("print", "ok"), by_name, StageOptions(), backend=backend))

    assert "worker 1: a worker prints" in lines
    assert "worker 1: and its libraries too" in lines
    assert capfd.readouterr().out == ""


@pytest.mark.slow
def test_a_cluster_without_resources_stops_the_stage_and_names_the_request(cluster):
    """The stage does not wait indefinitely for a machine that does not exist."""
    backend = RayBackend(2, num_cpus=0, num_gpus=64, start_limit_s=1)
    options = StageOptions(diagnostics_interval_s=0.5, grace_s=0)
    outcome = run_stage(RunSpec(plan_of("ok", "ok", "ok"), by_name, options, backend=backend))

    assert outcome.cancelled_reason == (
        "stopped because the Ray cluster placed no worker within 1 s (each requests num_gpus = 64); "
        "lower execution.num_cpus or num_gpus, or add nodes"
    )
    assert (outcome.scheduled, outcome.cancelled) == (3, 3)


@pytest.mark.chaos
def test_a_lost_cluster_stops_the_stage_and_the_next_stage_starts_another(tmp_path):
    """Ray ends this process a minute after its head; the stage stops before, with all items accounted for."""
    ray_cluster.disconnect()
    ray_cluster.connect("")
    (head,) = [child for child in psutil.Process().children() if child.name() == "gcs_server"]
    options = StageOptions(grace_s=0)
    backend = RayBackend(1, num_cpus=0)
    plan = plan_of(*["sleep"] * 200, meta={"seconds": 1})
    outcome = run_stage(RunSpec(plan, by_name, options, AtItem("sleep-1", head.kill), backend=backend))
    ray_cluster.connect("")
    after = run_stage(RunSpec(plan_of("ok"), by_name, options, backend=RayBackend(1, num_cpus=0)))

    assert outcome.cancelled_reason is not None
    assert "the Ray cluster is lost" in outcome.cancelled_reason
    assert adds_up(outcome)
    assert after.succeeded == 1


@pytest.mark.slow
def test_closing_leaves_no_worker_behind(cluster):
    """Workers can be idle, or busy with something that cannot be interrupted."""
    backend = RayBackend(1, num_cpus=0)
    pid = backend.get_result(backend.submit(job("pid-1")), 60).counts["pid"]
    backend.submit(job("stuck-2"))
    time.sleep(0.5)
    backend.close(0)

    assert all_gone([pid], within_s=10)


@pytest.mark.chaos
def test_connecting_keeps_the_handler_of_sigterm():
    """Ray replaces it, and a stopped command would end without cleaning up."""
    ray_cluster.disconnect()
    before = signal.getsignal(signal.SIGTERM)
    ray_cluster.connect("")

    assert signal.getsignal(signal.SIGTERM) == before


def test_without_ray_the_message_names_the_extra(monkeypatch):
    """It also says how to run without Ray."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"ingest-assets\[ray\].*backend = \"local\""):
        workers_for(StageOptions(execution=ExecutionOptions(backend="ray")))


def test_an_address_without_a_cluster_is_named():
    """The error is one line and immediate, not a stack trace of Ray after minutes."""
    ray_cluster.disconnect()
    with pytest.raises(IngestError, match=r"execution.address: no Ray cluster can be used at '127.0.0.1:9'"):
        ray_cluster.connect("127.0.0.1:9")


@pytest.mark.chaos
def test_no_process_outlives_a_killed_coordinator_that_started_a_cluster(tmp_path):
    """After SIGKILL neither workers nor Ray's servers run; its two agents end within a minute."""
    script = tmp_path / "coordinator.py"
    script.write_text(_COORDINATOR, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    coordinator = subprocess.Popen(
        [sys.executable, script, tmp_path], env=environment, start_new_session=True
    )
    try:
        started = _wait_for(tmp_path / "sleep-0.started", within_s=60)
        family = psutil.Process(coordinator.pid).children(recursive=True)
        servers = [child.pid for child in family if not child.name().endswith("Agent")]
        coordinator.kill()
        coordinator.wait(timeout=30)
        assert all_gone([started], within_s=30)
        assert all_gone(servers, within_s=30)
    finally:
        coordinator.kill()


_COORDINATOR = """
import sys
from ingest_assets.backends.ray import RayBackend
from ingest_assets.backends.ray import connect
from ingest_assets.core.items import Plan, WorkItem
from ingest_assets.settings.execution import StageOptions
from ingest_assets.runner import RunSpec, run_stage
from ingest_tests.runner.workers import announced

if __name__ == "__main__":
    connect("")
    items = [WorkItem("sleep-0", "f", output_paths=(sys.argv[1] + "/sleep-0",))]
    run_stage(RunSpec(Plan("stage", items), announced, StageOptions(), backend=RayBackend(1, num_cpus=0)))
"""


def _kill_actor_of(note: Path) -> None:
    """Kill the actor, which is the parent of the process that runs the item."""
    os.kill(psutil.Process(_wait_for(note, within_s=60)).ppid(), signal.SIGKILL)


def _wait_for(note: Path, within_s: float) -> int:
    """Wait for the file and return the process id in it."""
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        if note.exists() and (text := note.read_text()):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"{note.name} was not written")
