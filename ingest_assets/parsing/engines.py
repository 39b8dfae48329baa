"""Page engines: the embedded models, Docling's models, Docling without models, or a vision model."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.core.endpoints import find_key_fault
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import installed_versions, sha256_text
from ingest_assets.core.model_hub import (
    ANSWER_SECONDS,
    ModelNotFetched,
    describe_hub_error,
    hash_model_file,
    hub_cache,
    hub_name,
)
from ingest_assets.settings.parsing import EngineName, ParsingOptions

# Docling's models on disk: the files it loads, where to look for them, and whether they are complete.
#
# Docling is not imported, which takes seconds; a test compares these names with the installed version.


@dataclass(frozen=True, slots=True)
class DoclingModel:
    """One of Docling's models: its hub repository, and the files that are loaded from it."""

    name: str
    title: str
    repo: str
    revision: str
    files: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Docling's name of the repository's folder in an artifacts folder."""
        return self.repo.replace("/", "--")


LAYOUT = DoclingModel(
    "layout",
    "page layout (heron)",
    "docling-project/docling-layout-heron",
    "main",
    ("config.json", "preprocessor_config.json", "model.safetensors"),
)
_TABLEFORMER = "model_artifacts/tableformer/accurate"
TABLEFORMER = DoclingModel(
    "tableformer",
    "table structure (TableFormer, accurate)",
    "docling-project/docling-models",
    "v2.3.0",
    (f"{_TABLEFORMER}/tm_config.json", f"{_TABLEFORMER}/tableformer_accurate.safetensors"),
)
DOCLING_MODELS = (LAYOUT, TABLEFORMER)
ABSENT = "folder not found"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files in a folder; `faults` describes missing and damaged files."""

    model: DoclingModel
    path: str
    revision: str = ""
    content_hash: str = ""
    size_bytes: int = 0
    faults: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if Docling can load the model."""
        return not self.faults

    @property
    def fault(self) -> str:
        """The first fault; empty when the model is complete."""
        return self.faults[0] if self.faults else ""


@dataclass(frozen=True, slots=True)
class ModelLocation:
    """A place for Docling's models: an artifacts folder or the hub's cache."""

    path: Path
    is_cache: bool

    def __str__(self) -> str:
        return f"the hub's cache {self.path}" if self.is_cache else str(self.path)

    def find(self, model: DoclingModel) -> ModelFiles:
        """Return the model's files here, complete or not."""
        if not self.is_cache:
            folder = self.path / model.folder
            # written by the hub's client next to downloaded files; missing for copied files
            metadata = folder / ".cache" / "huggingface" / "download" / f"{model.files[-1]}.metadata"
            return _check_files(model, folder, _read_text(metadata).partition("\n")[0].strip())
        repository = self.path / f"models--{model.folder}"
        commit = _read_text(repository / "refs" / model.revision).strip()
        folder = repository / "snapshots" / commit if commit else repository
        return _check_files(model, folder, commit)


def model_location(artifacts_path: str, environ: Mapping[str, str] = os.environ) -> ModelLocation:
    """Return the configured folder, else the one in DOCLING_ARTIFACTS_PATH, else the hub's cache."""
    folder = artifacts_path or environ.get("DOCLING_ARTIFACTS_PATH", "")
    if folder:
        return ModelLocation(Path(folder).expanduser().absolute(), is_cache=False)
    return ModelLocation(hub_cache(environ), is_cache=True)


def recheck(files: ModelFiles) -> ModelFiles:
    """Check the same folder on this machine now."""
    return _check_files(files.model, Path(files.path), files.revision)


def _check_files(model: DoclingModel, folder: Path, revision: str) -> ModelFiles:
    hashes, faults, size = [], [], 0
    for name in model.files:
        try:
            status = (folder / name).stat()
            digest = hash_model_file(folder / name, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            faults.append(f"{name} is missing")
        except (OSError, ValueError) as error:
            faults.append(f"{name} is unusable ({getattr(error, 'strerror', None) or error})")
        else:
            hashes.append(f"{name} {digest}")
            size += status.st_size
    if faults == [f"{name} is missing" for name in model.files] and not folder.exists():
        faults = [ABSENT]
    content_hash = "" if faults else sha256_text("\n".join(hashes))
    return ModelFiles(model, str(folder), revision, content_hash, size, tuple(faults))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


# The choice of the engine that reads pages, and its part in fingerprints.

PAGE_FORMATS = ("pdf", "image")  # the formats that an engine reads
_TORCH = ("torch", "torchvision", "transformers")  # libraries that run Docling's models
# Settings of the vision model that change its answers; the others only configure the connection.
_VLM_FINGERPRINTED = ("url", "model", "prompt", "response_format", "image_scale", "max_tokens")


@dataclass(frozen=True, slots=True)
class PageEngine:
    """The chosen engine, the reason of the choice and, for `docling`, the models that it loads."""

    name: EngineName = "embedded"
    models: tuple[ModelFiles, ...] = ()
    reason: str = field(default="", compare=False)

    def reader_of(self, file_format: str) -> EngineName:
        """Return the engine that reads this format. `native` cannot read images: they have no text layer."""
        return "embedded" if self.name == "native" and file_format == "image" else self.name

    def identity(self, file_format: str, options: ParsingOptions) -> Mapping[str, Any]:
        """Return what decides the result for this format; part of the fingerprints of its documents."""
        engine = self.reader_of(file_format)
        if engine == "vlm":
            return {"engine": engine, **options.vlm.model_dump(include=set(_VLM_FINGERPRINTED))}
        if engine == "native":
            return {"engine": engine}
        identity: dict[str, Any] = {"engine": engine, "ocr": options.ocr}
        if engine == "docling":
            identity["models"] = {files.model.name: files.content_hash for files in self.models}
            identity["libraries"] = installed_versions(*_TORCH)
        return identity

    def describe_models(self, options: ParsingOptions) -> str:
        """Return the models in one line, for a table's footer; empty for models from Python packages."""
        if self.name == "vlm":
            return options.vlm.model
        return ", ".join(f"{files.model.name}@{files.content_hash[:12]}" for files in self.models)


EMBEDDED = PageEngine()


def choose_engine(options: ParsingOptions, environ: Mapping[str, str] = os.environ) -> PageEngine:
    """Return the engine of the settings; raises `ConfigError` when it cannot run."""
    match options.pdf:
        case "docling" | "auto":
            return _docling_or_embedded(options, environ)
        case "native":
            _require_native()
        case "vlm":
            _require_vlm(options, environ)
    return PageEngine(options.pdf, reason="set by parsing.pdf")


def _docling_or_embedded(options: ParsingOptions, environ: Mapping[str, str]) -> PageEngine:
    location = model_location(options.artifacts_path, environ)
    models = tuple(location.find(model) for model in DOCLING_MODELS)
    is_complete = all(model.is_complete for model in models)
    if options.pdf == "auto" and is_complete:
        return PageEngine("docling", models, reason=f"auto: Docling's models are in {location}")
    if options.pdf == "auto":
        is_partial = any(model.is_complete for model in models)
        missing = f" ({describe_missing(models)})" if is_partial else ""
        reason = f"auto: Docling's models are not installed{missing}; `ingest models pull` installs them"
        return PageEngine("embedded", reason=reason)
    if not is_complete:
        raise ConfigError(
            f"parsing.pdf: Docling's models are not all in {location}: {describe_missing(models)}. "
            "Download them with `ingest models pull`, copy them and set parsing.artifacts_path, or set "
            "parsing.pdf = 'auto'."
        )
    return PageEngine("docling", models, reason="set by parsing.pdf")


def describe_missing(models: tuple[ModelFiles, ...]) -> str:
    """Name each incomplete model with its first fault."""
    faults = ((files.model.name, files.fault) for files in models if not files.is_complete)
    return ", ".join(
        f"{name} is missing" if fault == ABSENT else f"{name}: {fault}" for name, fault in faults
    )


def _require_native() -> None:
    # only its file is looked up: importing Docling takes seconds
    spec = find_spec("docling")
    roots = spec.submodule_search_locations if spec is not None else None
    if not any((Path(root) / "pipeline" / "native_pdf_pipeline.py").is_file() for root in roots or ()):
        raise ConfigError(
            "parsing.pdf: the installed Docling has no native PDF pipeline. Upgrade docling or set "
            "parsing.pdf = 'auto'."
        )


def _require_vlm(options: ParsingOptions, environ: Mapping[str, str]) -> None:
    for name in ("url", "model"):
        if not getattr(options.vlm, name):
            raise ConfigError(f"parsing.vlm.{name} is not set, but parsing.pdf = 'vlm' requires it. Set it.")
    fault = find_key_fault(options.vlm.api_key_env, environ)
    if fault:
        raise ConfigError(
            f"parsing.vlm.api_key_env: {fault}. Set it to the key of {options.vlm.address}, or remove the "
            "setting if no key is required."
        )


# Downloads of Docling's models from the model hub.


def fetch_model(model: DoclingModel, location: ModelLocation, *, with_bar: bool = False) -> ModelFiles:
    """Download the files of a model that Docling loads, and check that they are complete.

    An interrupted download leaves no file under its final name; the next one resumes it.
    """
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    if not with_bar:
        disable_progress_bars()
    try:
        # `snapshot_download` alone would accept local files when the hub does not answer
        HfApi().model_info(model.repo, revision=model.revision, timeout=ANSWER_SECONDS)
        snapshot_download(
            model.repo,
            revision=model.revision,
            allow_patterns=list(model.files),
            cache_dir=location.path if location.is_cache else None,
            local_dir=None if location.is_cache else location.path / model.folder,
        )
    except (OSError, ValueError, httpx.HTTPError) as error:
        raise ModelNotFetched(_fetch_failure(model, describe_hub_error(error))) from None
    files = location.find(model)
    if not files.is_complete:
        raise ModelNotFetched(_fetch_failure(model, f"the download is incomplete ({files.fault})"))
    return files


def _fetch_failure(model: DoclingModel, reason: str) -> str:
    return (
        f"Cannot download {model.name} ({model.repo}) from {hub_name()}: {reason}. On a machine with network "
        "access, set parsing.artifacts_path to a folder, run `ingest models pull`, copy the folder here and "
        "set parsing.artifacts_path to it."
    )
