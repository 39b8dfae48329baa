"""Prove equal bytes: the same documents, from nothing, once for each way of running."""

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
# One worker shows what the backend changes, more of them what their order does.
_WORKERS = (1, 2, 4)
_WORKERS_ON_RAY = (1, 2)
_MOST_WORKERS = 256


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of running every stage."""

    kind: Kind
    workers: int
    is_installed: bool = True
    note: str = ""

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.kind}-{self.workers}"


INLINE = Variant("inline", 1)


def choose_variants(home: Home, only: str | None, workers: str | None) -> list[Variant]:
    """What to run, in order: inline first, because it is what the others are compared with."""
    kinds, numbers = _kinds(only), _numbers(workers)
    has_gpu_stage = any(home.options(stage).policy == "gpu" for stage in home.graph)
    chosen = [INLINE]
    for kind in kinds:
        note = "gpu stages on threads" if kind == "processes" and has_gpu_stage and has_cuda() else ""
        is_installed = kind != "ray" or has_ray()
        usual = {*(_WORKERS_ON_RAY if kind == "ray" else _WORKERS), _own_number(home, on_ray=kind == "ray")}
        chosen += [Variant(kind, n, is_installed, note) for n in numbers or sorted(usual)]
    return chosen


def has_ray() -> bool:
    """True when the extra `ray` is installed."""
    return find_spec("ray") is not None


def settings_of(home: Home, variant: Variant) -> Settings:
    """The home's settings with every stage run this way; sources are left out, the documents are given.

    Folders are as this home finds them: the variant's home is elsewhere. Nothing is remembered: vectors that
    one variant has made would stand for those of the next, and prove nothing.
    """
    settings = home.settings_found
    families = settings.embeddings
    forgetful = families.cache.model_copy(update={"enabled": False})
    stages = {stage: _options_of(home.options(stage), variant) for stage in home.graph}
    features = {"parallel": True, "require_parity": False}
    return settings.model_copy(
        update={
            "sources": {},
            "stages": settings.stages.model_copy(update=stages),
            "embeddings": families.model_copy(update={"cache": forgetful}),
            "features": settings.features.model_copy(update=features),
        }
    )


def _options_of(options: StageOptions, variant: Variant) -> StageOptions:
    """What the stage claims of a cluster stays; where it runs, and on how many workers, is the variant's."""
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


def _own_number(home: Home, *, on_ray: bool) -> int:
    """The most workers of a stage that computes; threads that wait for a disk or a model are no measure."""
    if not home.settings.features.parallel or (on_ray and not has_ray()):
        return 1
    options = [home.options(stage) for stage in home.graph]
    computing = [each for each in options if each.policy == "cpu" and (kind_of(each) == "ray") == on_ray]
    return max((workers_for(each)[0] for each in computing), default=1)


def _kinds(only: str | None) -> list[Kind]:
    if only is None:
        return [kind for kind in KINDS if kind != "inline"]
    names = re.findall(r"[^,\s]+", only)
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise ConfigError(f"--only: no such backend: {unknown[0]}; known are {', '.join(KINDS)}.")
    kinds: list[Kind] = [kind for kind in KINDS if kind in names and kind != "inline"]
    if not kinds:
        raise ConfigError(
            "--only: inline is what the others are compared with; name one of threads, processes, ray too."
        )
    if "ray" in kinds:
        import_ray()
    return kinds


def _numbers(workers: str | None) -> list[int]:
    """Exactly the numbers that were asked for; none when nothing was."""
    if workers is None:
        return []
    words = re.findall(r"[^,\s]+", workers)
    if not words or not all(re.fullmatch(r"[0-9]{1,3}", w) and 1 <= int(w) <= _MOST_WORKERS for w in words):
        raise ConfigError(
            f"--workers: should be numbers from 1 to {_MOST_WORKERS}, as in 1,2,4; got {workers!r}."
        )
    return sorted({int(word) for word in words})


# The runs behind `ingest validate`: the same documents, from nothing, once for each way of running.


# What runs the batches of a home whose settings are given.
Executing = Callable[[Home], contextlib.AbstractContextManager[Executor]]
Status = Literal["base", "equal", "different", "not complete", "not installed"]
_INTAKE = "intake"


@dataclass(frozen=True, slots=True)
class VariantResult:
    """What one way of running came to."""

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
        """Nothing speaks against this way of running."""
        return self.status in ("base", "equal", "not installed")


@contextlib.contextmanager
def alone(home: Home) -> Iterator[None]:
    """Nobody else validates this home, and what an interrupted validation left is gone."""
    lock = FileLock(home.layout.parity_lock)
    if not lock.try_acquire():
        raise IngestError(f"{home.layout.home}: another `ingest validate` is running here; wait for its end.")
    try:
        shutil.rmtree(home.layout.parity_runs, ignore_errors=True)
        yield
    finally:
        lock.release()


def take_in(home: Home, folder: Path) -> ScanReport:
    """One ledger for all runs: batch keys hold the date, and midnight may pass between two runs."""
    folder = require_folder(folder)
    ledger = Ledger(_layout(home, _INTAKE).ledger)
    try:
        limits = ScanLimits(home.settings.batches)
        own = frozenset({home.layout.data, home.layout.state})
        return scan(ledger, [WatchedFolder("input", folder)], limits, own)
    finally:
        ledger.close()


def run_variants(
    home: Home, variants: Sequence[Variant], executing: Executing, tell: Callable[[VariantResult], None]
) -> list[VariantResult]:
    """Run each and compare it with the first. Stops when the first is not complete.

    A home is removed as soon as its tables are known to be equal, so that the disk holds two of them, and
    those that differ.
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
    here = open_home(layout.home, settings=settings_of(home, variant))
    with executing(here) as executor:
        report = run_batches(here, list(here.graph), {}, executor, reason="validate")
    with contextlib.closing(here.ledger):
        failed = {failure["doc_id"] for failure in failures(here, report.errors)}
        done = len(here.ledger.documents()) - len(failed)
        if report.broken:  # of a run that stopped, those that have reached the last table
            done = len(here.tables(list(here.graph)[-1]).records)
    assets = [here.serving(stage) for stage in here.graph]
    status: Status = "base" if base is None else "equal"
    why = "; ".join(f"batch {batch}: {reason}" for batch, reason in report.broken.items())
    difference = None
    if why:
        status = "not complete"
    elif base is not None and (difference := first_difference(base, here.layout, assets)) is not None:
        status, why = "different", difference.as_line()
    return VariantResult(
        variant=variant,
        status=status,
        seconds=report.wall_seconds,
        done=done,
        failed=len(failed),
        tables=table_hashes(here.layout, assets),
        difference=difference,
        why=why,
        kept=here.layout.home if why else None,
    )


def _layout(home: Home, name: str) -> Layout:
    return Layout(home.layout.parity_home(name))
