"""Which of Docling's backends and pipelines reads which format, with every fetch switched off."""

import threading
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.model.options import ParsingOptions

PAGE_FORMATS = ("pdf", "image")  # read page by page, with layout and OCR

_opening = threading.Lock()  # a pipeline fills registries that all of them share

_BACKENDS = {
    "pdf": "docling_parse_backend.ThreadedDoclingParseDocumentBackend",
    "image": "image_backend.ImageDocumentBackend",
    "html": "html_backend.HTMLDocumentBackend",
    "md": "md_backend.MarkdownDocumentBackend",
    "docx": "msword_backend.MsWordDocumentBackend",
    "pptx": "mspowerpoint_backend.MsPowerpointDocumentBackend",
    "xlsx": "msexcel_backend.MsExcelDocumentBackend",
    "csv": "csv_backend.CsvDocumentBackend",
    "asciidoc": "asciidoc_backend.AsciiDocBackend",
    "vtt": "webvtt_backend.WebVTTDocumentBackend",
    "latex": "latex_backend.LatexDocumentBackend",
    "epub": "epub_backend.EpubDocumentBackend",
    "email": "email_backend.EmailDocumentBackend",
    "xml_jats": "xml.jats_backend.JatsDocumentBackend",
    "odt": "opendocument_backend.OdtDocumentBackend",
    "ods": "opendocument_backend.OdsDocumentBackend",
    "odp": "opendocument_backend.OdpDocumentBackend",
}


class Engines:
    """Docling's pipelines, each made when the first document asks for it and kept warm."""

    def __init__(self, options: ParsingOptions, threads: int) -> None:
        self._options = options
        self._threads = threads

    def backend(self, kind: str) -> Any:
        """The class that opens documents of this format."""
        module, name = _BACKENDS[kind].rsplit(".", 1)
        return getattr(import_module(f"docling.backend.{module}"), name)

    def backend_options(self, kind: str) -> Any:
        """Docling's defaults fetch nothing, remote or local; only PDFs have something to set."""
        from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions

        return ThreadedDoclingParseBackendOptions(parser_threads=self._threads) if kind == "pdf" else None

    def pipeline(self, kind: str) -> Any:
        """The pipeline that converts documents of this format."""
        with _opening:
            return self._pages if kind in PAGE_FORMATS else self._simple

    @cached_property
    def _simple(self) -> Any:
        from docling.datamodel.pipeline_options import ConvertPipelineOptions
        from docling.pipeline.simple_pipeline import SimplePipeline

        return SimplePipeline(ConvertPipelineOptions())

    @cached_property
    def _pages(self) -> Any:
        from docling.datamodel.accelerator_options import AcceleratorDevice, AcceleratorOptions
        from docling.datamodel.pipeline_options import ThreadedPdfPipelineOptions
        from docling.pipeline.standard_pdf_pipeline import StandardPdfPipeline

        from ingest_assets.parsing import plugin

        register_plugin()
        accelerator = AcceleratorOptions(num_threads=self._threads, device=AcceleratorDevice.CPU)
        return StandardPdfPipeline(
            ThreadedPdfPipelineOptions(
                accelerator_options=accelerator,
                allow_external_plugins=True,
                layout_options=plugin.EmbeddedLayoutOptions(),
                table_structure_options=plugin.GeometricTableOptions(),
                do_ocr=self._options.ocr,
                ocr_options=ocr_options(),
                # one page at a time: a larger batch would wait for pages that never come
                layout_batch_size=1,
                ocr_batch_size=1,
                table_batch_size=1,
                batch_polling_interval_seconds=0.05,
                queue_max_size=8,
            )
        )


def ocr_options() -> Any:
    """RapidOCR with the weights in its own package: given paths, it never looks for a download."""
    from ingest_assets.parsing import plugin

    spec = find_spec("rapidocr")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("rapidocr is not installed; it reads pages without a text layer.")
    models = Path(spec.submodule_search_locations[0]) / "models"
    return plugin.ScannedPageOcrOptions(
        backend="onnxruntime",
        det_model_path=str(models / "PP-OCRv6_det_small.onnx"),
        cls_model_path=str(models / "ch_ppocr_mobile_v2.0_cls_mobile.onnx"),
        rec_model_path=str(models / "PP-OCRv6_rec_small.onnx"),
        rapidocr_params={"Global.log_level": "critical"},
    )


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
