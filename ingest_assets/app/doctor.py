"""Check that this machine and home have everything a run needs."""

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ingest_assets.app.execution import RunOptions, check_run_options
from ingest_assets.app.home import Home, open_home
from ingest_assets.backends import kind_of
from ingest_assets.core.errors import IngestError
from ingest_assets.embedders.providers import describe_dense
from ingest_assets.intake.folders.walk import require_folder
from ingest_assets.parsing.engines import choose_engine
from ingest_assets.storage.atomic import replacing

# A commit writes the new table beside the old one, so it needs free space.
_NEEDED_GIB = 2
_IMPORTS = ("docling.document_converter", "torchvision", "transformers", "onnxruntime", "rapidocr")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about this machine or home."""

    name: str
    is_good: bool
    fact: str


def examine(path: Path, extra_checks: Mapping[str, Callable[[Home], str]]) -> Iterator[Finding]:
    """Yield all findings: settings first, because others depend on them."""
    is_supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    advice = "" if is_supported else " is not supported; use Python 3.11, 3.12 or 3.13"
    yield Finding("python", is_supported, platform.python_version() + advice)
    try:
        home = open_home(path, creates_ledger=False)  # a mistyped path must not become a home
    except IngestError as error:
        yield Finding("settings", False, str(error))
        return
    yield Finding(
        "settings",
        True,
        str(home.layout.settings_file if home.layout.settings_file.is_file() else "defaults"),
    )
    checks: dict[str, Callable[[Home], str]] = {
        "home": _probe_home,
        "disk": _free_space,
        "ledger": lambda h: f"{sum(not d.is_deleted() for d in h.ledger.documents())} documents known",
        "model": _dense_model,
        "pdf engine": lambda h: "{0.name} ({0.reason})".format(choose_engine(h.resolved_settings.parsing)),
        "stages": lambda h: ", ".join(h.stages),
        "execution": _execution,
        **extra_checks,
    }
    for name, check in checks.items():
        yield _run_check(name, check, home)
    for source in home.sources() if home.layout.ledger.is_file() else []:
        yield _run_check(f"source {source.name}", partial(_source_folder, source.path), home)
    yield _opencv()
    for module in _IMPORTS:
        yield _import(module)


def _run_check(name: str, check: Callable[[Home], str], home: Home) -> Finding:
    try:
        return Finding(name, True, check(home))
    except (IngestError, OSError) as error:
        return Finding(name, False, str(error))


def _source_folder(folder: Path, _home: Home) -> str:
    return str(require_folder(folder))


def _execution(home: Home) -> str:
    """Return where each stage runs; raise `ConfigError` for options that a run would reject."""
    check_run_options(home, list(home.stages), RunOptions.model_validate({}))
    return ", ".join(f"{stage} on {kind_of(home.options(stage))}" for stage in home.stages)


def _dense_model(home: Home) -> str:
    facts = describe_dense(home.resolved_settings.embeddings.dense)
    return f"{facts.model_id} by {facts.provider}, {facts.dim} dimensions"


def _probe_home(home: Home) -> str:
    with replacing(home.layout.state / "doctor.probe") as scratch:
        scratch.write_text("probe")
    (home.layout.state / "doctor.probe").unlink()
    return f"{home.layout.home} can be written"


def _free_space(home: Home) -> str:
    free = shutil.disk_usage(home.layout.home).free / 2**30
    if free < _NEEDED_GIB:
        raise OSError(
            f"{free:.1f} GiB free, at least {_NEEDED_GIB} GiB needed. Free disk space or move the home."
        )
    return f"{free:.0f} GiB free"


def _opencv() -> Finding:
    """rapid-layout requires opencv-python, rapidocr opencv-python-headless. Both are the module cv2, so the
    one installed last wins; opencv-python cannot be imported where libGL is missing, as on most servers."""
    finding = _import("cv2", "print('works' if cv2.version.headless else '')")
    if finding.fact == "works":
        return finding
    fact = "works with opencv-python; a machine without libGL needs opencv-python-headless"
    fix = f"{sys.executable} -m pip install --force-reinstall --no-deps opencv-python-headless"
    return Finding(finding.name, finding.is_good, f"{finding.fact or fact}; fix: {fix}")


def _import(module: str, then: str = "print('works')") -> Finding:
    """Import in a subprocess: a library that crashes on import must not end this process."""
    code = f"import {module}; {then}"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    lines = process.stderr.strip().splitlines()
    error = lines[-1] if lines else f"exited with code {process.returncode}"
    is_good = process.returncode == 0
    return Finding(f"import {module}", is_good, process.stdout.strip() if is_good else error)
