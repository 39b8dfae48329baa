"""Compare tables byte by byte: ingest the same documents into an empty home for each backend."""

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ingest_assets.app.differences import Difference, first_difference, table_hashes
from ingest_assets.app.driver import Executor, run_batches
from ingest_assets.app.execution import NO_BUDGET
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.report import failures
from ingest_assets.backends import Kind, kind_of, workers_for
from ingest_assets.backends.ray import import_ray
from ingest_assets.core.errors import ConfigError, IngestError
from ingest_assets.core.layout import Layout
from ingest_assets.embedders.torch import has_cuda
from ingest_assets.intake.folders.scan import ScanLimits, ScanReport, WatchedFolder, scan
from ingest_assets.intake.folders.walk import require_folder
from ingest_assets.intake.ledger import Ledger
from ingest_assets.settings.execution import StageOptions
from ingest_assets.settings.tree import Settings
from ingest_assets.storage.locks import FileLock

KINDS: tuple[Kind, ...] = ("inline", "threads", "processes", "ray")
# One worker shows differences between backends; more workers show those caused by order.
_WORKERS = (1, 2, 4)
_WORKERS_ON_RAY = (1, 2)
_MAX_WORKERS = 256


@dataclass(frozen=True, slots=True)
class Variant:
    """A backend and number of workers to run every stage with."""

    kind: Kind
    workers: int
    is_installed: bool = True
    note: str = ""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.kind}-{self.workers}"


INLINE = Variant("inline", 1)


def choose_variants(home: Home, only: str | None, workers: str | None) -> list[Variant]:
    """Return the variants in order: inline first, because the others are compared with it."""
    kinds, numbers = _kinds(only), _numbers(workers)
    has_gpu_stage = any(home.options(stage).policy == "gpu" for stage in home.graph)
    chosen = [INLINE]
    for kind in kinds:
        note = "gpu stages on threads" if kind == "processes" and has_gpu_stage and has_cuda() else ""
        is_installed = kind != "ray" or has_ray()
        defaults = _WORKERS_ON_RAY if kind == "ray" else _WORKERS
        usual = {*defaults, _configured_workers(home, on_ray=kind == "ray")}
        chosen += [Variant(kind, n, is_installed, note) for n in numbers or sorted(usual)]
    return chosen


def has_ray() -> bool:
    """True if the extra `ray` is installed."""
    return find_spec("ray") is not None


def settings_of(home: Home, variant: Variant) -> Settings:
    """Return the home's settings with every stage on the variant's backend, without sources.

    Model folders are absolute, because the variant's home is elsewhere. The vector cache is off: a variant
    must not reuse the vectors of another.
    """
    settings = home.resolved_settings
    families = settings.embeddings
    cache_off = families.cache.model_copy(update={"enabled": False})
    stages = {stage: _options_of(home.options(stage), variant) for stage in home.graph}
    features = {"parallel": True, "require_parity": False}
    return settings.model_copy(
        update={
            "sources": {},
            "stages": settings.stages.model_copy(update=stages),
            "embeddings": families.model_copy(update={"cache": cache_off}),
            "features": settings.features.model_copy(update=features),
        }
    )


def _options_of(options: StageOptions, variant: Variant) -> StageOptions:
    """Return the stage's options with the variant's backend and workers; resources per worker stay."""
    kind: Kind = variant.kind
    if kind == "processes" and options.policy == "gpu" and has_cuda():
        kind = "threads"
    where = {
        "backend": "ray" if kind == "ray" else "local",
        "run_on": "auto" if kind == "ray" else kind,
        "max_workers": 0,
        "dangerous_gpu_processes": kind == "processes",
    }
    execution = options.execution.model_copy(update=where)
    # A failure is a result to compare, and one of the samples fails on purpose.
    changes = {"workers": variant.workers, "execution": execution}
    return options.model_copy(update=changes | NO_BUDGET)


def _configured_workers(home: Home, *, on_ray: bool) -> int:
    """Return the largest number of workers of a CPU stage; threads that wait for a disk do not count."""
    if not home.settings.features.parallel or (on_ray and not has_ray()):
        return 1
    options = [home.options(stage) for stage in home.graph]
    on_cpu = [stage for stage in options if stage.policy == "cpu" and (kind_of(stage) == "ray") == on_ray]
    return max((workers_for(stage)[0] for stage in on_cpu), default=1)


def _kinds(only: str | None) -> list[Kind]:
    if only is None:
        return [kind for kind in KINDS if kind != "inline"]
    names = re.findall(r"[^,\s]+", only)
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise ConfigError(f"--only: unknown backend {unknown[0]!r}. Use {', '.join(KINDS)}.")
    kinds: list[Kind] = [kind for kind in KINDS if kind in names and kind != "inline"]
    if not kinds:
        raise ConfigError(
            "--only: the other backends are compared with inline. Add threads, processes or ray."
        )
    if "ray" in kinds:
        import_ray()
    return kinds


def _numbers(workers: str | None) -> list[int]:
    """Return the numbers of `--workers`; empty if it is not set."""
    if workers is None:
        return []
    words = re.findall(r"[^,\s]+", workers)
    if not words or not all(re.fullmatch(r"[0-9]{1,3}", w) and 1 <= int(w) <= _MAX_WORKERS for w in words):
        raise ConfigError(
            f"--workers: must be numbers from 1 to {_MAX_WORKERS}, such as 1,2,4; got {workers!r}."
        )
    return sorted({int(word) for word in words})


# The runs of `ingest validate`.


# Opens an executor for the batches of a home.
Executing = Callable[[Home], contextlib.AbstractContextManager[Executor]]
Status = Literal["base", "equal", "different", "not complete", "not installed"]
_INTAKE = "intake"


@dataclass(frozen=True, slots=True)
class VariantResult:
    """The result of one variant."""

    variant: Variant
    status: Status
    seconds: float = 0.0
    done: int = 0
    failed: int = 0
    tables: dict[str, str] = field(default_factory=dict)
    difference: Difference | None = None
    why: str = ""
    kept: Path | None = None

    def is_good(self) -> bool:
        """True unless the variant differs or did not complete."""
        return self.status in ("base", "equal", "not installed")


@contextlib.contextmanager
def lock_validation(home: Home) -> Iterator[None]:
    """Hold the validation lock, and remove what an interrupted validation left."""
    lock = FileLock(home.layout.parity_lock)
    if not lock.try_acquire():
        raise IngestError(f"{home.layout.home}: another `ingest validate` is running here. Wait for its end.")
    try:
        shutil.rmtree(home.layout.parity_runs, ignore_errors=True)
        yield
    finally:
        lock.release()


def scan_input(home: Home, folder: Path) -> ScanReport:
    """Scan into one ledger for all variants: batch keys contain the date, which can change between runs."""
    folder = require_folder(folder)
    ledger = Ledger(_layout(home, _INTAKE).ledger)
    try:
        limits = ScanLimits(home.settings.batches)
        excluded = frozenset({home.layout.data, home.layout.state})
        return scan(ledger, [WatchedFolder("input", folder)], limits, excluded)
    finally:
        ledger.close()


def run_variants(
    home: Home, variants: Sequence[Variant], executing: Executing, tell: Callable[[VariantResult], None]
) -> list[VariantResult]:
    """Run each variant and compare it with the first. Stop if the first does not complete.

    A home with equal tables is removed at once, so that the disk holds only two homes and those that differ.
    """
    results: list[VariantResult] = []
    base = _layout(home, variants[0].name)
    for variant in variants:
        result = _run(home, variant, base if results else None, executing)
        results.append(result)
        tell(result)
        if result.status == "equal":
            shutil.rmtree(_layout(home, variant.name).home, ignore_errors=True)
        if not results[0].is_good():
            break
    if all(result.is_good() for result in results):
        shutil.rmtree(home.layout.parity_runs, ignore_errors=True)
    return results


def _run(home: Home, variant: Variant, base: Layout | None, executing: Executing) -> VariantResult:
    if not variant.is_installed:
        return VariantResult(variant, "not installed")
    layout = _layout(home, variant.name)
    layout.ledger.parent.mkdir(parents=True)
    shutil.copy2(_layout(home, _INTAKE).ledger, layout.ledger)
    variant_home = open_home(layout.home, settings=settings_of(home, variant))
    with executing(variant_home) as executor:
        report = run_batches(variant_home, list(variant_home.graph), {}, executor, reason="validate")
    with contextlib.closing(variant_home.ledger):
        failed = {failure["doc_id"] for failure in failures(variant_home, report.errors)}
        done = len(variant_home.ledger.documents()) - len(failed)
        if report.broken:  # count only documents in the last table
            done = len(variant_home.tables(list(variant_home.graph)[-1]).records)
    assets = [variant_home.serving_asset(stage) for stage in variant_home.graph]
    status: Status = "base" if base is None else "equal"
    why = "; ".join(f"batch {batch}: {reason}" for batch, reason in report.broken.items())
    difference = None
    if why:
        status = "not complete"
    elif base is not None and (difference := first_difference(base, variant_home.layout, assets)) is not None:
        status, why = "different", difference.as_line()
    return VariantResult(
        variant=variant,
        status=status,
        seconds=report.wall_seconds,
        done=done,
        failed=len(failed),
        tables=table_hashes(variant_home.layout, assets),
        difference=difference,
        why=why,
        kept=variant_home.layout.home if why else None,
    )


def _layout(home: Home, name: str) -> Layout:
    return Layout(home.layout.parity_home(name))
