"""Is everything there that a run needs?"""

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ingest_assets.app.execution import RunOptions, refuse_early
from ingest_assets.app.home import Home, open_home
from ingest_assets.backends import kind_of
from ingest_assets.core.errors import IngestError
from ingest_assets.embedders.providers import describe_dense
from ingest_assets.intake.folders.walk import require_folder
from ingest_assets.parsing.engines import choose_engine
from ingest_assets.storage.atomic import replacing

# A commit writes the new table beside the old one; with less than this it may not fit.
_NEEDED_GIB = 2
_IMPORTS = ("docling.document_converter", "torchvision", "transformers", "onnxruntime", "cv2", "rapidocr")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about this machine or home."""

    name: str
    is_good: bool
    fact: str


def examine(path: Path, more: Mapping[str, Callable[[Home], str]]) -> Iterator[Finding]:
    """Every finding; the settings first, because the others depend on them, and `more` after our own."""
    yield Finding("python", (3, 11) <= sys.version_info[:2] <= (3, 12), platform.python_version())
    try:
        home = open_home(path)
    except IngestError as error:
        yield Finding("settings", False, str(error))
        return
    yield Finding(
        "settings",
        True,
        str(home.layout.settings_file if home.layout.settings_file.is_file() else "defaults"),
    )
    checks: dict[str, Callable[[Home], str]] = {
        "home": _writable,
        "disk": _disk,
        "ledger": lambda h: f"{sum(not d.is_deleted() for d in h.ledger.documents())} documents known",
        "model": _model,
        "pdf engine": lambda h: "{0.name} ({0.why})".format(choose_engine(h.settings_found.parsing)),
        "stages": lambda h: ", ".join(h.stages),
        "execution": _execution,
        **more,
    }
    for name, check in checks.items():
        yield _try(name, check, home)
    for source in home.sources() if home.layout.ledger.is_file() else []:
        yield _try(f"source {source.name}", partial(_readable, source.path), home)
    for module in _IMPORTS:
        yield _import(module)


def _try(name: str, check: Callable[[Home], str], home: Home) -> Finding:
    try:
        return Finding(name, True, check(home))
    except (IngestError, OSError) as error:
        return Finding(name, False, str(error))


def _readable(folder: Path, _home: Home) -> str:
    return str(require_folder(folder))


def _execution(home: Home) -> str:
    """What would be refused is refused here too; where each stage runs."""
    refuse_early(home, list(home.stages), RunOptions.model_validate({}))
    return ", ".join(f"{stage} on {kind_of(home.options(stage))}" for stage in home.stages)


def _model(home: Home) -> str:
    facts = describe_dense(home.settings_found.embeddings.dense)
    return f"{facts.model_id} by {facts.provider}, {facts.dim} dimensions"


def _writable(home: Home) -> str:
    with replacing(home.layout.state / "doctor.probe") as scratch:
        scratch.write_text("probe")
    (home.layout.state / "doctor.probe").unlink()
    return f"{home.layout.home} can be written"


def _disk(home: Home) -> str:
    free = shutil.disk_usage(home.layout.home).free / 2**30
    if free < _NEEDED_GIB:
        raise OSError(f"{free:.1f} GiB free, at least {_NEEDED_GIB} wanted; make room or move the home")
    return f"{free:.0f} GiB free"


def _import(module: str) -> Finding:
    """In a process of its own: a library that crashes on import must not take the doctor along."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"], capture_output=True, text=True, check=False
    )
    lines = done.stderr.strip().splitlines()
    fault = lines[-1] if lines else f"ended with code {done.returncode}"
    return Finding(f"import {module}", done.returncode == 0, "works" if done.returncode == 0 else fault)
