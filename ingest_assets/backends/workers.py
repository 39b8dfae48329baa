"""Choose the number of workers from the machine's cores, memory and GPUs, and say why."""

import os
from dataclasses import dataclass
from pathlib import Path

from ingest_assets.settings.execution import StageOptions

MIB = 1024 * 1024
# Items that wait for a network or a disk use little CPU; more of them would only use memory.
MAX_IO_WORKERS = 32
IO_WORKERS_PER_CORE = 4
# Documents in flight that fill the batches of one model; more do not make it faster.
MAX_IN_FLIGHT = 16
IN_FLIGHT_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class Machine:
    """The resources that this process can use, within the limits of its container."""

    cores: int
    available_mib: int
    gpus: int = 0


def choose_workers(options: StageOptions, machine: Machine) -> tuple[int, str]:
    """Return the configured number or the number that fits, at most `max_workers`; and the reason."""
    if options.workers > 0:
        count, reason = options.workers, f"{options.workers} as configured"
    else:
        count, reason = _by_policy(options, machine)
        if options.execution.backend == "ray" and (room := _room(options, machine)) < count:
            count, reason = room, f"{room}: limited by the cluster, instead of {reason}"
    cap = options.execution.max_workers
    if 0 < cap < count:
        return cap, f"{cap} by execution.max_workers, instead of {reason}"
    return count, reason


def _by_policy(options: StageOptions, machine: Machine) -> tuple[int, str]:
    if options.policy == "gpu":
        return _gpu_count(options, machine)
    if options.policy == "io":
        count = max(1, min(MAX_IO_WORKERS, IO_WORKERS_PER_CORE * machine.cores))
        per_core = f"{IO_WORKERS_PER_CORE} per core on {machine.cores} cores"
        return count, f"{count}: {per_core}, at most {MAX_IO_WORKERS}"
    fitting = machine.available_mib // options.memory_per_worker_mib
    count = max(1, min(machine.cores, fitting))
    return count, (
        f"{count}: {machine.cores} cores, and memory for {fitting} "
        f"({machine.available_mib} MiB available, {options.memory_per_worker_mib} MiB each)"
    )


def _gpu_count(options: StageOptions, machine: Machine) -> tuple[int, str]:
    """Return the workers of a gpu stage: documents that one model embeds together, or on Ray, models."""
    if options.execution.backend == "local" and options.execution.run_on in ("auto", "threads"):
        count = min(MAX_IN_FLIGHT, IN_FLIGHT_PER_CORE * machine.cores)
        return count, f"{count}: documents in flight, which one model embeds together"
    claimed = gpus_requested(options, machine) if options.execution.backend == "ray" else 0
    count = int(machine.gpus / claimed) if claimed else 0
    if count > 1:
        return count, f"{count}: {machine.gpus} GPUs, {claimed:g} for each worker"
    return 1, "1: one model, which combines texts in batches"


def _room(options: StageOptions, machine: Machine) -> int:
    """Return how many workers with these requests fit on the cluster."""
    cpus, gpus = options.execution.num_cpus, gpus_requested(options, machine)
    memory = machine.available_mib // options.memory_per_worker_mib
    fitting = [
        memory,
        int(machine.cores / cpus) if cpus else memory,
        int(machine.gpus / gpus) if gpus else memory,
    ]
    return max(1, min(fitting))


def gpus_requested(options: StageOptions, machine: Machine) -> float:
    """Return the GPUs that one Ray worker requests; without a request, Ray hides all GPUs."""
    if options.execution.num_gpus is not None:
        return options.execution.num_gpus
    return 1 if options.policy == "gpu" and machine.gpus else 0


def probe(cgroup: Path = Path("/sys/fs/cgroup")) -> Machine:
    """Return the cores by affinity and quota, and the memory that the system and control groups allow."""
    import psutil

    has_affinity = hasattr(os, "sched_getaffinity")  # not on macOS
    cores = [len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1]
    available = [psutil.virtual_memory().available // MIB]
    # This process's control group and those above it; inside a container usually only the root.
    names = [word[3:].lstrip("/") for word in _words(Path("/proc/self/cgroup")) if word.startswith("0::")]
    leaf = cgroup / names[0] if names else cgroup
    groups = [folder for folder in (leaf, *leaf.parents) if folder.is_relative_to(cgroup)]
    for core_limit, memory_limit in [*map(_v2_limits, groups), _v1_limits(cgroup)]:
        cores += [] if core_limit is None else [core_limit]
        available += [] if memory_limit is None else [memory_limit]
    return Machine(cores=max(1, min(cores)), available_mib=min(available))


Limits = tuple[int | None, int | None]


def _v2_limits(folder: Path) -> Limits:
    quota = [_number(word) for word in _words(folder / "cpu.max")] or [None]
    return _limits(
        quota=quota[0],
        period=quota[-1],
        limit=_number_in(folder / "memory.max"),
        used=_number_in(folder / "memory.current"),
        cache=_stat(folder / "memory.stat", "inactive_file"),
    )


def _v1_limits(root: Path) -> Limits:
    return _limits(
        quota=_number_in(root / "cpu" / "cpu.cfs_quota_us"),
        period=_number_in(root / "cpu" / "cpu.cfs_period_us"),
        limit=_number_in(root / "memory" / "memory.limit_in_bytes"),
        used=_number_in(root / "memory" / "memory.usage_in_bytes"),
        cache=_stat(root / "memory" / "memory.stat", "total_inactive_file"),
    )


def _limits(quota: int | None, period: int | None, limit: int | None, used: int | None, cache: int) -> Limits:
    """Return the cores and the free mebibytes; file cache that can be dropped counts as free."""
    cores = max(1, quota // period) if quota and period else None
    free = max(0, limit - used + cache) // MIB if limit is not None and used is not None else None
    return cores, free


def _stat(path: Path, name: str) -> int:
    words = _words(path)
    return int(words[words.index(name) + 1]) if name in words else 0


def _number_in(path: Path) -> int | None:
    words = _words(path)
    return _number(words[0]) if words else None


def _number(word: str) -> int | None:
    """Return the number; None for `max` and `-1`, which mean no limit."""
    return int(word) if word.isdigit() else None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
