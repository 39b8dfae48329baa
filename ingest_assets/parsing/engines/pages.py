"""Docling's pipelines for pages that run here: with the embedded models, with Docling's own, with none."""

import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.parsing.engines.artifacts import FoundModel, examine_again
from ingest_assets.parsing.engines.errors import EngineUnavailable
from ingest_assets.parsing.errors import OcrUnavailable
from ingest_assets.parsing.quiet import silence_table_model

_OCR_MODELS = (
    "PP-OCRv6_det_small.onnx",
    "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "PP-OCRv6_rec_small.onnx",
)


def open_embedded(ocr: bool, threads: int) -> Any:
    """Layout, tables and OCR from packages: nothing is downloaded."""
    from ingest_assets.parsing import plugin
    from ingest_assets.parsing.embedded.pipeline import EmbeddedPdfPipeline

    models = {
        "layout_options": plugin.EmbeddedLayoutOptions(),
        "table_structure_options": plugin.GeometricTableOptions(),
    }
    return _standard(ocr, threads, models, EmbeddedPdfPipeline)


def open_docling(ocr: bool, found: Sequence[FoundModel]) -> Any:
    """Docling's layout and TableFormer, from the very folders that the plan names; OCR as ever.

    Docling wants one folder with all models below it, so it is given one with links, just for loading. One
    thread: torch gives other last bits with two, and workers are what uses the cores.
    """
    from docling.datamodel.object_detection_engine_options import TransformersObjectDetectionEngineOptions
    from docling.datamodel.pipeline_options import LayoutObjectDetectionOptions, TableStructureOptions

    _check_models(found)
    silence_table_model()
    register_plugin()  # for OCR
    # compiled models differ from host to host, and need a compiler
    engine = TransformersObjectDetectionEngineOptions(compile_model=False)
    models = {
        "layout_options": LayoutObjectDetectionOptions(engine_options=engine),
        "table_structure_options": TableStructureOptions(),
    }
    with tempfile.TemporaryDirectory(prefix="ingest-docling-") as folder:
        for each in found:
            (Path(folder) / each.model.folder).symlink_to(each.path, target_is_directory=True)
        return _standard(ocr, 1, models | {"artifacts_path": folder})


def open_native(threads: int) -> Any:
    """What the PDF itself says: quick, without reading order, headings, tables and OCR."""
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline

    return NativePdfPipeline(
        NativePdfPipelineOptions(
            parser_threads=threads, generate_page_images=False, generate_picture_images=False
        )
    )


def _check_models(found: Sequence[FoundModel]) -> None:
    """The models must be here too, and the same ones: workers on other machines have other disks."""
    for each in found:
        here = examine_again(each)
        if here.content_hash != each.content_hash:
            fault = here.fault or "is another version than where the plan was made"
            raise EngineUnavailable(
                f"Docling's {each.model.name} model is not on this worker as planned: in {each.path} "
                f"{fault}; put the models where every worker sees them, and set parsing.artifacts_path to it."
            )


def _standard(ocr: bool, threads: int, models: dict[str, Any], pipeline: Any = None) -> Any:
    from docling.datamodel.accelerator_options import AcceleratorDevice, AcceleratorOptions
    from docling.datamodel.pipeline_options import ThreadedPdfPipelineOptions

    from ingest_assets.parsing import plugin
    from ingest_assets.parsing.ranged_pipeline import RangedPdfPipeline

    accelerator = AcceleratorOptions(num_threads=threads, device=AcceleratorDevice.CPU)
    return (pipeline or RangedPdfPipeline)(
        ThreadedPdfPipelineOptions(
            accelerator_options=accelerator,
            allow_external_plugins=True,
            do_ocr=ocr,
            ocr_options=ocr_options() if ocr else plugin.ScannedPageOcrOptions(),
            # one page at a time: a larger batch would wait for pages that never come
            layout_batch_size=1,
            ocr_batch_size=1,
            table_batch_size=1,
            batch_polling_interval_seconds=0.05,
            queue_max_size=8,
            **models,
        )
    )


def ocr_options() -> Any:
    """RapidOCR with the weights in its own package: given paths, it never looks for a download."""
    from ingest_assets.parsing import plugin

    det, cls, rec = (str(path) for path in ocr_models())
    return plugin.ScannedPageOcrOptions(
        backend="onnxruntime",
        det_model_path=det,
        cls_model_path=cls,
        rec_model_path=rec,
        rapidocr_params={"Global.log_level": "critical"},
    )


def ocr_models() -> tuple[Path, Path, Path]:
    """RapidOCR's weights: where text is, which way up it stands, what it says."""
    spec = find_spec("rapidocr")
    if spec is None or not spec.submodule_search_locations:
        raise OcrUnavailable("rapidocr is not installed; install it, or set parsing.ocr = false.")
    models = Path(spec.submodule_search_locations[0]) / "models"
    det, cls, rec = (models / name for name in _OCR_MODELS)
    for path in (det, cls, rec):
        if not path.is_file():
            raise OcrUnavailable(f"rapidocr lacks its model {path.name}; install it anew.")
    return det, cls, rec


def register_plugin() -> None:
    """Docling finds the plug-in by its entry point; where the product is not installed, hand it over."""
    from docling.models.factories import get_layout_factory, get_ocr_factory, get_table_structure_factory

    from ingest_assets.parsing import plugin

    for factory, engines in (
        (get_layout_factory(allow_external_plugins=True), plugin.layout_engines()),
        (get_table_structure_factory(allow_external_plugins=True), plugin.table_structure_engines()),
        (get_ocr_factory(allow_external_plugins=True), plugin.ocr_engines()),
    ):
        for engine in next(iter(engines.values())):
            if engine.get_options_type() not in factory.classes:  # type: ignore[attr-defined]
                factory.register(engine, "ingest_assets", plugin.__name__)
