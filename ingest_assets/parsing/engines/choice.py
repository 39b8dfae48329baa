"""Which engine reads pages. Decided once, where the plan is made; workers are told and do not ask again."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.model.endpoints import key_fault
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.identity import installed_versions
from ingest_assets.model.options import EngineName, ParsingOptions
from ingest_assets.parsing.engines.artifacts import ABSENT, DOCLING_MODELS, FoundModel, Place, place_of

PAGE_FORMATS = ("pdf", "image")  # read page by page: what an engine is for
_TORCH = ("torch", "torchvision", "transformers")
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
    if options.pdf == "docling":
        return _docling(place_of(options.artifacts_path, environ))
    if options.pdf == "native":
        return _native()
    if options.pdf == "vlm":
        return _vlm(options, environ)
    if options.pdf == "auto":
        return _automatic(place_of(options.artifacts_path, environ))
    return PageEngine("embedded", why="set by parsing.pdf")


def _automatic(place: Place) -> PageEngine:
    found = tuple(place.find(model) for model in DOCLING_MODELS)
    if all(each.is_whole for each in found):
        return PageEngine("docling", found, why=f"auto: Docling's models are in {place}")
    return PageEngine("embedded", why=f"auto: Docling's models are not all in {place}: {missing(found)}")


def _docling(place: Place) -> PageEngine:
    found = tuple(place.find(model) for model in DOCLING_MODELS)
    if not all(each.is_whole for each in found):
        raise ConfigError(
            f"parsing.pdf: docling needs its models, and in {place} {missing(found)}; fetch them with "
            "`ingest models pull`, or copy them and set parsing.artifacts_path, or set parsing.pdf = 'auto'."
        )
    return PageEngine("docling", found, why="set by parsing.pdf")


def missing(found: tuple[FoundModel, ...]) -> str:
    """What is not there, in words: each model with its first fault."""
    faults = ((each.model.name, each.fault) for each in found if not each.is_whole)
    return ", ".join(
        f"{name} is absent" if fault == ABSENT else f"of {name} {fault}" for name, fault in faults
    )


def _native() -> PageEngine:
    spec = find_spec("docling")
    roots = spec.submodule_search_locations if spec is not None else None
    if not any((Path(root) / "pipeline" / "native_pdf_pipeline.py").is_file() for root in roots or ()):
        raise ConfigError(
            "parsing.pdf: the installed Docling has no native PDF pipeline; update docling, or set "
            "parsing.pdf = 'auto'."
        )
    return PageEngine("native", why="set by parsing.pdf")


def _vlm(options: ParsingOptions, environ: Mapping[str, str]) -> PageEngine:
    for name in ("url", "model"):
        if not getattr(options.vlm, name):
            raise ConfigError(f"parsing.vlm.{name}: not set, and parsing.pdf = 'vlm' needs it.")
    fault = key_fault(options.vlm.api_key_env, environ)
    if fault:
        raise ConfigError(
            f"parsing.vlm.api_key_env: {fault}; set it to the key of {options.vlm.address}, or remove the "
            "setting if no key is needed."
        )
    return PageEngine("vlm", why="set by parsing.pdf")
