"""Choose and open a backend: inline, threads, processes or Ray."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Literal

from ingest_assets.backends import ray as ray_cluster
from ingest_assets.backends.processes import ProcessBackend
from ingest_assets.backends.threads import ThreadBackend
from ingest_assets.backends.workers import choose_workers, gpus_claimed, probe
from ingest_assets.core.errors import ConfigError, SubmitFailed
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.ports import Call, ExecutionBackend
from ingest_assets.settings.execution import StageOptions

Kind = Literal["inline", "threads", "processes", "ray"]

_IO_CPUS = 0.25  # what an item that mostly waits claims of a shared cluster


class InlineBackend:
    """Items one by one in the coordinator's own thread: for debugging, and to compare the others with.

    Nothing can be stopped: no time limits, and a crash is a crash.
    """

    workers = 1
    is_inline = True
    abandoned = 0
    broken: str | None = None

    def __init__(self) -> None:
        self._closed = False

    def submit(self, call: Call, item: WorkItem, context: ItemContext, timeout_s: float) -> Future[Any]:
        """Make the call now; the future is ended when it returns."""
        if self._closed:
            raise SubmitFailed("the backend is closed")
        future: Future[Any] = Future()
        future.set_result(call(item, context))
        return future

    def close(self, grace_s: float) -> None:
        """Nothing runs between two calls."""
        self._closed = True


def kind_of(options: StageOptions) -> Kind:
    """Where the items will run; refuses a combination that would hurt.

    Threads are for waiting and for models; processes, which can be killed, for native code.
    """
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
    kind, max_mebibytes = kind_of(options), options.execution.max_worker_mebibytes
    if kind == "inline":
        return InlineBackend()
    if kind == "threads":
        return ThreadBackend(workers)
    if kind == "processes":
        return ProcessBackend(workers, preload, max_mebibytes=max_mebibytes)
    ray_cluster.connect(options.execution.address)
    return ray_cluster.RayBackend(
        workers,
        preload,
        num_cpus=_cpus_claimed(options),
        num_gpus=gpus_claimed(options, ray_cluster.cluster_machine()),
        max_mebibytes=max_mebibytes,
        say=say,
    )


def _cpus_claimed(options: StageOptions) -> float:
    """Nothing on a cluster of our own: the number of workers is already chosen by what the machine has."""
    if options.execution.num_cpus is not None:
        return options.execution.num_cpus
    if ray_cluster.owns_cluster():
        return 0
    return _IO_CPUS if options.policy == "io" else 1
