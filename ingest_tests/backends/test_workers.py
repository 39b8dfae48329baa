"""The number of workers and its reason."""

import pytest

from ingest_assets.backends import Machine, choose_workers, kind_of, probe
from ingest_assets.core.errors import ConfigError
from ingest_assets.settings.execution import ExecutionOptions, StageOptions


@pytest.mark.parametrize(
    ("options", "cores", "available_mib", "expected"),
    [
        (StageOptions(policy="cpu", workers=7), 2, 100, (7, "7 as configured")),
        (
            StageOptions(policy="cpu", memory_per_worker_mib=2048),
            8,
            10_000,
            (4, "4: 8 cores, and memory for 4 (10000 MiB available, 2048 MiB each)"),
        ),
        (
            StageOptions(policy="cpu", memory_per_worker_mib=2048),
            8,
            100,
            (1, "1: 8 cores, and memory for 0 (100 MiB available, 2048 MiB each)"),
        ),
        (StageOptions(policy="io"), 2, 100, (8, "8: 4 per core on 2 cores, at most 32")),
        (StageOptions(policy="io"), 64, 100, (32, "32: 4 per core on 64 cores, at most 32")),
        (
            StageOptions(policy="gpu"),
            64,
            100,
            (16, "16: documents in flight, which one model embeds together"),
        ),
        (
            StageOptions(policy="io", execution=ExecutionOptions(max_workers=3)),
            2,
            100,
            (3, "3 by execution.max_workers, instead of 8: 4 per core on 2 cores, at most 32"),
        ),
        (
            StageOptions(policy="cpu", execution=ExecutionOptions(backend="ray", num_cpus=4)),
            16,
            100_000,
            (
                4,
                "4: limited by the cluster, instead of 16: 16 cores, and memory for 195 "
                "(100000 MiB available, 512 MiB each)",
            ),
        ),
        (
            StageOptions(workers=2, execution=ExecutionOptions(max_workers=3)),
            2,
            100,
            (2, "2 as configured"),
        ),
    ],
)
def test_the_number_of_workers_fits_the_machine_and_says_why(options, cores, available_mib, expected):
    """The reason is logged with every run."""
    assert choose_workers(options, Machine(cores, available_mib)) == expected


@pytest.mark.parametrize(
    ("execution", "gpus", "expected"),
    [
        (ExecutionOptions(backend="ray"), 4, (4, "4: 4 GPUs, 1 for each worker")),
        (ExecutionOptions(backend="ray", num_gpus=0.5), 2, (4, "4: 2 GPUs, 0.5 for each worker")),
        (ExecutionOptions(backend="ray"), 0, (1, "1: one model, which combines texts in batches")),
        (ExecutionOptions(), 4, (16, "16: documents in flight, which one model embeds together")),
    ],
)
def test_on_a_cluster_every_gpu_can_have_a_worker(execution, gpus, expected):
    """On one machine, one model combines the texts of several documents."""
    options = StageOptions(policy="gpu", execution=execution)
    assert choose_workers(options, Machine(8, 100_000, gpus)) == expected


def test_the_probe_finds_a_machine():
    """It has at least one core, and some memory."""
    machine = probe()
    assert machine.cores >= 1
    assert machine.available_mib > 0


def test_the_probe_respects_a_container(tmp_path):
    """Limits are those of control groups v2; file cache that can be dropped counts as free."""
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    (tmp_path / "memory.max").write_text(f"{64 * 2**20}\n")
    (tmp_path / "memory.current").write_text(f"{48 * 2**20}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {8 * 2**20}\n")

    machine = probe(tmp_path)
    assert (machine.cores, machine.available_mib) == (1, 24)


def test_the_probe_reads_no_limit_as_none(tmp_path):
    """`max` and -1 mean no limit."""
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")

    assert probe(tmp_path).cores == probe(tmp_path / "nowhere").cores


def test_policies_choose_their_backend():
    """Processes can be killed; threads share a model."""
    kinds = {policy: kind_of(StageOptions(policy=policy)) for policy in ("cpu", "io", "gpu")}
    assert kinds == {"cpu": "processes", "io": "threads", "gpu": "threads"}


def test_the_settings_can_choose_the_backend():
    """`run_on` and `backend` override the policy."""
    execution = ExecutionOptions(run_on="inline")
    assert kind_of(StageOptions(policy="cpu", execution=execution)) == "inline"
    assert kind_of(StageOptions(policy="cpu", execution=ExecutionOptions(backend="ray"))) == "ray"


def test_a_gpu_stage_rejects_processes_unless_allowed():
    """Each process would have its own model and GPU context."""
    execution = ExecutionOptions(run_on="processes")
    with pytest.raises(ConfigError, match="dangerous_gpu_processes = true"):
        kind_of(StageOptions(policy="gpu", execution=execution))

    allowed = execution.model_copy(update={"dangerous_gpu_processes": True})
    assert kind_of(StageOptions(policy="gpu", execution=allowed)) == "processes"
