"""Which backend a stage's options mean, and how many workers it gets there."""

from collections.abc import Callable, Sequence
from typing import Literal

from ingest_assets.backends import ray_cluster
from ingest_assets.backends.local import local_backend
from ingest_assets.backends.workers import choose_workers, gpus_claimed, probe
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.options import StageOptions
from ingest_assets.model.ports import ExecutionBackend

Kind = Literal["inline", "threads", "processes", "ray"]

_IO_CPUS = 0.25


def kind_of(options: StageOptions) -> Kind:
    """Where the items will run; refuses a combination that would hurt."""
    execution = options.execution
    if execution.backend == "ray":
        return "ray"
    if execution.run_on == "auto":
        return "processes" if options.policy == "cpu" else "threads"
    is_dangerous = options.policy == "gpu" and execution.run_on == "processes"
    if is_dangerous and not execution.dangerous_gpu_processes:
        raise ConfigError(
            "execution.run_on: a gpu stage does not run on processes, where each would load the model and "
            "open the GPU for itself; leave it at auto, or set execution.dangerous_gpu_processes = true."
        )
    return execution.run_on


def workers_for(options: StageOptions) -> tuple[int, str]:
    """How many workers, and why; connects to the cluster when that is where they will be."""
    kind = kind_of(options)
    if kind == "inline":
        return 1, "1: inline, in the step itself"
    if kind != "ray":
        return choose_workers(options, probe())
    ray_cluster.connect(options.execution.address)
    return choose_workers(options, ray_cluster.cluster_machine())


def open_backend(
    options: StageOptions, workers: int, preload: Sequence[str], say: Callable[[str], None]
) -> ExecutionBackend:
    """The backend itself; `say` hears what far workers print."""
    kind = kind_of(options)
    if kind != "ray":
        return local_backend(kind, workers, preload, options.execution.max_worker_mebibytes)
    from ingest_assets.backends.ray_backend import RayBackend

    ray_cluster.connect(options.execution.address)
    gpus = gpus_claimed(options, ray_cluster.cluster_machine())
    return RayBackend(
        workers,
        preload,
        num_cpus=_cpus_claimed(options),
        num_gpus=gpus,
        max_mebibytes=options.execution.max_worker_mebibytes,
        say=say,
    )


def _cpus_claimed(options: StageOptions) -> float:
    """Nothing on a cluster of our own: the number of workers is already chosen by what the machine has."""
    if options.execution.num_cpus is not None:
        return options.execution.num_cpus
    if ray_cluster.owns_cluster():
        return 0
    return _IO_CPUS if options.policy == "io" else 1
