"""Page engines: the embedded models, Docling's own, its model-free pipeline, or a vision model."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.core.endpoints import key_fault
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import installed_versions, sha256_text
from ingest_assets.core.model_hub import (
    ANSWER_SECONDS,
    ModelNotFetched,
    hash_whole,
    hub_cache,
    hub_name,
    reason_of,
)
from ingest_assets.settings.parsing import EngineName, ParsingOptions

# Docling's own models on disk: which files it loads, where they may be, and whether they are whole.
#
# Looked up without Docling, whose import takes seconds; a test holds the names here to the installed version.


@dataclass(frozen=True, slots=True)
class DoclingModel:
    """One of Docling's models: the repository it is published in, and the files of it that are loaded."""

    name: str
    title: str
    repo: str
    revision: str
    files: tuple[str, ...]

    @property
    def folder(self) -> str:
        """What Docling calls the repository's folder below an artifacts folder."""
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
ABSENT = "there is no such folder"


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model's files in a folder; with faults, in words, when they are not all there and whole."""

    model: DoclingModel
    path: str
    revision: str = ""
    content_hash: str = ""
    size_bytes: int = 0
    faults: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """True when Docling can load it."""
        return not self.faults

    @property
    def fault(self) -> str:
        """The first thing that is wrong, in words; empty when nothing is."""
        return self.faults[0] if self.faults else ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where models are looked for: an artifacts folder, or the hub's cache."""

    path: Path
    is_cache: bool

    def __str__(self) -> str:
        return f"the hub's cache {self.path}" if self.is_cache else str(self.path)

    def find(self, model: DoclingModel) -> FoundModel:
        """The model as it is here, whole or not."""
        if not self.is_cache:
            folder = self.path / model.folder
            # what the hub's client wrote down beside the files it fetched; nothing for files that were copied
            note = folder / ".cache" / "huggingface" / "download" / f"{model.files[-1]}.metadata"
            return _examined(model, folder, _read_text(note).partition("\n")[0].strip())
        repository = self.path / f"models--{model.folder}"
        commit = _read_text(repository / "refs" / model.revision).strip()
        folder = repository / "snapshots" / commit if commit else repository
        return _examined(model, folder, commit)


def place_of(artifacts_path: str, environ: Mapping[str, str] = os.environ) -> Place:
    """The configured folder, or the one that Docling's own variable names, or the hub's cache."""
    given = artifacts_path or environ.get("DOCLING_ARTIFACTS_PATH", "")
    if given:
        return Place(Path(given).expanduser().absolute(), is_cache=False)
    return Place(hub_cache(environ), is_cache=True)


def examine_again(found: FoundModel) -> FoundModel:
    """The same folder, as it is on this machine now."""
    return _examined(found.model, Path(found.path), found.revision)


def _examined(model: DoclingModel, folder: Path, revision: str) -> FoundModel:
    hashes, faults, size = [], [], 0
    for name in model.files:
        try:
            status = (folder / name).stat()
            digest = hash_whole(folder / name, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            faults.append(f"{name} is missing")
        except (OSError, ValueError) as error:
            faults.append(f"{name} cannot be used ({getattr(error, 'strerror', None) or error})")
        else:
            hashes.append(f"{name} {digest}")
            size += status.st_size
    if faults == [f"{name} is missing" for name in model.files] and not folder.exists():
        faults = [ABSENT]
    content_hash = "" if faults else sha256_text("\n".join(hashes))
    return FoundModel(model, str(folder), revision, content_hash, size, tuple(faults))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


# Which engine reads pages, and what of it belongs into fingerprints.

PAGE_FORMATS = ("pdf", "image")  # read page by page: what an engine is for
_TORCH = ("torch", "torchvision", "transformers")  # what Docling's own models run on
# Settings of the vision model that change its answers; the others say how it is reached.
_ASKED = ("url", "model", "prompt", "response_format", "image_scale", "max_tokens")


@dataclass(frozen=True, slots=True)
class PageEngine:
    """An engine as it was found: for `docling` with the models it loads, and why it was chosen, in words."""

    name: EngineName = "embedded"
    models: tuple[FoundModel, ...] = ()
    why: str = field(default="", compare=False)

    def reader_of(self, kind: str) -> EngineName:
        """Who reads this format: a picture has no text of its own, so the model-free pipeline cannot."""
        return "embedded" if self.name == "native" and kind == "image" else self.name

    def identity(self, kind: str, options: ParsingOptions) -> Mapping[str, Any]:
        """What of the engine decides how a format reads: part of the fingerprints of such documents alone."""
        engine = self.reader_of(kind)
        if engine == "vlm":
            return {"engine": engine, **options.vlm.model_dump(include=set(_ASKED))}
        if engine == "native":
            return {"engine": engine}
        found: dict[str, Any] = {"engine": engine, "ocr": options.ocr}
        if engine == "docling":
            found["models"] = {each.model.name: each.content_hash for each in self.models}
            found["libraries"] = installed_versions(*_TORCH)
        return found

    def described(self, options: ParsingOptions) -> str:
        """The models behind it in one line, as a table's footer says it; empty for what a package holds."""
        if self.name == "vlm":
            return options.vlm.model
        return ", ".join(f"{each.model.name}@{each.content_hash[:12]}" for each in self.models)


EMBEDDED = PageEngine()


def choose_engine(options: ParsingOptions, environ: Mapping[str, str] = os.environ) -> PageEngine:
    """The engine that the settings ask for; refuses one that cannot run, before any document does."""
    match options.pdf:
        case "docling" | "auto":
            return _docling_or_embedded(options, environ)
        case "native":
            _require_native()
        case "vlm":
            _require_vlm(options, environ)
    return PageEngine(options.pdf, why="set by parsing.pdf")


def _docling_or_embedded(options: ParsingOptions, environ: Mapping[str, str]) -> PageEngine:
    place = place_of(options.artifacts_path, environ)
    models = tuple(place.find(model) for model in DOCLING_MODELS)
    is_whole = all(model.is_whole for model in models)
    if options.pdf == "auto" and is_whole:
        return PageEngine("docling", models, why=f"auto: Docling's models are in {place}")
    if options.pdf == "auto":
        return PageEngine("embedded", why=f"auto: Docling's models are not all in {place}: {missing(models)}")
    if not is_whole:
        raise ConfigError(
            f"parsing.pdf: docling needs its models, and in {place} {missing(models)}; fetch them with "
            "`ingest models pull`, or copy them and set parsing.artifacts_path, or set parsing.pdf = 'auto'."
        )
    return PageEngine("docling", models, why="set by parsing.pdf")


def missing(found: tuple[FoundModel, ...]) -> str:
    """What is not there, in words: each model with its first fault."""
    faults = ((each.model.name, each.fault) for each in found if not each.is_whole)
    return ", ".join(
        f"{name} is absent" if fault == ABSENT else f"of {name} {fault}" for name, fault in faults
    )


def _require_native() -> None:
    # looked for as a file: Docling's import takes seconds
    spec = find_spec("docling")
    roots = spec.submodule_search_locations if spec is not None else None
    if not any((Path(root) / "pipeline" / "native_pdf_pipeline.py").is_file() for root in roots or ()):
        raise ConfigError(
            "parsing.pdf: the installed Docling has no native PDF pipeline; update docling, or set "
            "parsing.pdf = 'auto'."
        )


def _require_vlm(options: ParsingOptions, environ: Mapping[str, str]) -> None:
    for name in ("url", "model"):
        if not getattr(options.vlm, name):
            raise ConfigError(f"parsing.vlm.{name}: not set, and parsing.pdf = 'vlm' needs it.")
    fault = key_fault(options.vlm.api_key_env, environ)
    if fault:
        raise ConfigError(
            f"parsing.vlm.api_key_env: {fault}; set it to the key of {options.vlm.address}, or remove the "
            "setting if no key is needed."
        )


# Fetching Docling's models from the model hub, where there is a network.


def pull(model: DoclingModel, place: Place, *, with_bar: bool = False) -> FoundModel:
    """Fetch the files of a model that Docling loads, and look whether they are whole.

    A download that breaks off leaves no file under its own name; the next one goes on from there.
    """
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    if not with_bar:
        disable_progress_bars()
    try:
        # Asked first: without an answer, what follows would be content with whatever is here.
        HfApi().model_info(model.repo, revision=model.revision, timeout=ANSWER_SECONDS)
        snapshot_download(
            model.repo,
            revision=model.revision,
            allow_patterns=list(model.files),
            cache_dir=place.path if place.is_cache else None,
            local_dir=None if place.is_cache else place.path / model.folder,
        )
    except (OSError, ValueError, httpx.HTTPError) as error:
        raise ModelNotFetched(_failure(model, reason_of(error))) from None
    found = place.find(model)
    if not found.is_whole:
        raise ModelNotFetched(_failure(model, f"what it gave is not whole ({found.fault})"))
    return found


def _failure(model: DoclingModel, reason: str) -> str:
    return (
        f"{model.name} ({model.repo}) could not be fetched from {hub_name()}: {reason}; where there is a "
        "network, set parsing.artifacts_path to a folder, run `ingest models pull`, copy the folder here and "
        "set parsing.artifacts_path to it."
    )
