"""Replaces Docling's model registries while a pipeline is created.

Docling would register every model that it has and import torch's vision library: two seconds and much memory
per worker for models that this engine does not use. Only Docling loads this module.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from docling.models.factories.base_factory import BaseFactory
from docling.models.factories.layout_factory import LayoutFactory
from docling.models.factories.ocr_factory import OcrFactory
from docling.models.factories.table_factory import TableStructureFactory
from docling.pipeline import standard_pdf_pipeline

from ingest_assets.parsing import plugin

_Engines = Callable[[], dict[str, list[type]]]
_REGISTRIES: dict[str, tuple[type[BaseFactory[Any]], _Engines]] = {
    "get_layout_factory": (LayoutFactory, plugin.layout_engines),
    "get_table_structure_factory": (TableStructureFactory, plugin.table_structure_engines),
    "get_ocr_factory": (OcrFactory, plugin.ocr_engines),
}


@contextmanager
def embedded_models_only() -> Iterator[None]:
    """Register only the embedded models. Not thread-safe: create one pipeline at a time."""
    originals = {name: getattr(standard_pdf_pipeline, name) for name in _REGISTRIES}
    for name, (registry, engines) in _REGISTRIES.items():
        setattr(standard_pdf_pipeline, name, partial(_filled, registry, engines))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(standard_pdf_pipeline, name, original)


def _filled(registry: Callable[[], BaseFactory[Any]], engines: _Engines, **_: Any) -> BaseFactory[Any]:
    filled = registry()
    filled.process_plugin(engines(), "ingest_assets", plugin.__name__)
    return filled
