"""How a stage of a home will run: its options for this run, where, on how many workers, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.backends import Kind, kind_of, workers_for
from ingest_assets.backends.ray_cluster import import_ray, is_client
from ingest_assets.defs.home import Home
from ingest_assets.defs.parity import require_parity
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.options import StageOptions


@dataclass(frozen=True, slots=True)
class StageExecution:
    """Decided before the first item starts."""

    options: StageOptions
    kind: Kind
    workers: int
    reason: str

    def as_line(self) -> str:
        """For the log: `2 workers, processes (2: 2 cores, …)`."""
        return f"{self.workers} workers, {self.kind} ({self.reason})"


def execution_of(home: Home, stage: str, config: StageRunConfig) -> StageExecution:
    """Settings, run config and feature flags, put together; connects to Ray when that is asked for."""
    options = _options(home, stage, config)
    workers, reason = workers_for(options)
    if not home.settings.features.parallel and workers > 1:
        workers, reason = 1, "1: features.parallel is off"
    kind = kind_of(options)
    if workers > 1:
        require_parity(home, stage, kind, f"{workers} workers")
    return StageExecution(options, kind, workers, reason)


def refuse_early(home: Home, stages: Sequence[str], config: StageRunConfig) -> None:
    """Raise what a stage's execution would be refused for, before anything is started."""
    for stage in stages:
        options = _options(home, stage, config)
        kind = kind_of(options)
        if kind == "ray":
            import_ray()
        workers = _in_sight(home, options)
        if workers != 1:
            require_parity(home, stage, kind, f"{workers} workers" if workers else "several workers")


def workers_in_sight(home: Home, stage: str, config: StageRunConfig) -> int | None:
    """How many workers a stage will get; None where only the cluster can tell. Opens nothing."""
    return _in_sight(home, _options(home, stage, config))


def _in_sight(home: Home, options: StageOptions) -> int | None:
    if not home.settings.features.parallel:
        return 1
    if kind_of(options) != "ray":
        return workers_for(options)[0]
    return 1 if 1 in (options.workers, options.execution.max_workers) else options.workers or None


def _options(home: Home, stage: str, config: StageRunConfig) -> StageOptions:
    options = config.over(home.options(stage))
    address = options.execution.address
    is_used = options.execution.backend == "ray" and is_client(address)
    if is_used and not home.settings.features.experimental:
        raise ConfigError(
            f"execution.address: {address} goes through Ray Client, which is experimental here; give the "
            "head node's own HOST:PORT, or set features.experimental = true (--enable-experimental)."
        )
    return options
