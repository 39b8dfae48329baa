"""Choose and open a backend: inline, threads, processes or Ray."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Literal

from ingest_assets.backends import ray as ray_cluster
from ingest_assets.backends.jobs import JobBackend
from ingest_assets.backends.processes import ProcessBackend
from ingest_assets.backends.threads import ThreadBackend
from ingest_assets.backends.worker_process import run_work
from ingest_assets.backends.workers import choose_workers, gpus_requested, probe
from ingest_assets.core.errors import ConfigError, SubmitFailed
from ingest_assets.core.ports import ExecutionBackend, Work
from ingest_assets.settings.execution import StageOptions

Kind = Literal["inline", "threads", "processes", "ray"]

_IO_CPUS = 0.25  # cores that a worker of an io stage requests on a shared cluster


class InlineBackend(JobBackend):
    """Runs jobs one by one inside `submit`: for debugging, and as the reference for the other backends.

    Jobs cannot be stopped: time limits have no effect, and a crash ends the whole process.
    """

    workers = 1
    is_inline = True
    abandoned = 0
    broken: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self._closed = False

    def _start(self, work: Work, timeout_s: float) -> Future[Any]:
        if self._closed:
            raise SubmitFailed("the backend is closed")
        future: Future[Any] = Future()
        value, error = run_work(work, (Exception, SystemExit))  # Ctrl-C is raised to the caller
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
        return future

    def close(self, grace_s: float = 0.0) -> None:
        """Accept no more work; no job runs between two calls of `submit`."""
        self._closed = True


def kind_of(options: StageOptions) -> Kind:
    """Return where the items run; raise `ConfigError` for a gpu stage on processes.

    Threads are for waiting and for models; processes, which can be killed, are for native code.
    """
    execution = options.execution
    if execution.backend == "ray":
        return "ray"
    if execution.run_on == "auto":
        return "processes" if options.policy == "cpu" else "threads"
    is_dangerous = options.policy == "gpu" and execution.run_on == "processes"
    if is_dangerous and not execution.dangerous_gpu_processes:
        raise ConfigError(
            "execution.run_on: a gpu stage cannot use processes, because each loads its own model and GPU "
            "context; set it to auto, or set execution.dangerous_gpu_processes = true."
        )
    return execution.run_on


def workers_for(options: StageOptions) -> tuple[int, str]:
    """Return the number of workers and the reason; connect to the Ray cluster if they run there."""
    kind = kind_of(options)
    if kind == "inline":
        return 1, "1: inline, in the step"
    if kind != "ray":
        return choose_workers(options, probe())
    ray_cluster.connect(options.execution.address)
    return choose_workers(options, ray_cluster.cluster_machine())


def open_backend(
    options: StageOptions, workers: int, preload: Sequence[str], say: Callable[[str], None]
) -> ExecutionBackend:
    """Open the backend; `say` receives the output of remote workers."""
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
        num_cpus=_cpus_requested(options),
        num_gpus=gpus_requested(options, ray_cluster.cluster_machine()),
        max_mebibytes=max_mebibytes,
        say=say,
    )


def _cpus_requested(options: StageOptions) -> float:
    """Return 0 on a cluster that this process started: the number of workers already fits the machine."""
    if options.execution.num_cpus is not None:
        return options.execution.num_cpus
    if ray_cluster.owns_cluster():
        return 0
    return _IO_CPUS if options.policy == "io" else 1
