"""The ways of running that `ingest validate` compares, and the settings that each of them means."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from ingest_assets.backends import Kind, kind_of, workers_for
from ingest_assets.backends.ray_cluster import import_ray
from ingest_assets.config import Settings
from ingest_assets.defs.home import Home
from ingest_assets.embedders.devices import has_cuda
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.options import StageOptions

KINDS: tuple[Kind, ...] = ("inline", "threads", "processes", "ray")
_WORKERS = (1, 2, 4)
_WORKERS_ON_RAY = (1, 2)
_MOST_WORKERS = 256
# A failure is a result to compare, and one of the samples fails on purpose.
NO_BUDGET = {"error_budget": None, "max_failed_share": None, "cancel_on_first_failure": False}


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
    kinds = _kinds(only)
    numbers = _numbers(workers)
    chosen = [INLINE]
    for kind in kinds:
        note = "gpu stages on threads" if kind == "processes" and _keeps_gpu_on_threads(home) else ""
        is_installed = kind != "ray" or has_ray()
        chosen += [Variant(kind, n, is_installed, note) for n in numbers or _usual_numbers(home, kind)]
    return chosen


def has_ray() -> bool:
    """True when the extra `ray` is installed."""
    return find_spec("ray") is not None


def settings_of(home: Home, variant: Variant) -> Settings:
    """The home's settings with every stage run this way; sources are left out, the documents are given.

    Folders are as this home finds them: the variant's home is elsewhere. Nothing is remembered: vectors that
    one variant has made would stand for those of the next, and prove nothing.
    """
    settings = home.settings_elsewhere()
    families = settings.embeddings
    forgetful = families.cache.model_copy(update={"enabled": False})
    stages = {stage: _options_of(home.options(stage), variant) for stage in home.graph}
    features = {"parallel": True, "require_parity": False}
    return settings.model_copy(
        update={
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
    changes = {"workers": variant.workers, "execution": execution}
    return options.model_copy(update=changes | NO_BUDGET)


def _keeps_gpu_on_threads(home: Home) -> bool:
    return any(home.options(stage).policy == "gpu" for stage in home.graph) and has_cuda()


def _usual_numbers(home: Home, kind: Kind) -> Sequence[int]:
    """One, two, four, and the number that this home would choose by itself."""
    usual = _WORKERS_ON_RAY if kind == "ray" else _WORKERS
    own = _own_number(home, on_ray=kind == "ray")
    return sorted({*usual, own})


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
    names = _words(only)
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
    words = _words(workers)
    if not words or not all(re.fullmatch(r"[0-9]{1,3}", w) and 1 <= int(w) <= _MOST_WORKERS for w in words):
        raise ConfigError(
            f"--workers: should be numbers from 1 to {_MOST_WORKERS}, as in 1,2,4; got {workers!r}."
        )
    return sorted({int(word) for word in words})


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]
