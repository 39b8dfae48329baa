"""Docling's backend and pipeline of each format, with all downloads disabled."""

import tempfile
import threading
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.core.errors import ItemError
from ingest_assets.parsing.engines import EMBEDDED, PAGE_FORMATS, ModelFiles, PageEngine, recheck
from ingest_assets.parsing.errors import EngineUnavailable, OcrUnavailable
from ingest_assets.parsing.guard.images import image_backend
from ingest_assets.parsing.guard.limits import backend_options
from ingest_assets.parsing.libraries import silence_table_model
from ingest_assets.parsing.pdf.layout import RENDER_SCALE
from ingest_assets.settings.parsing import EngineName, ParsingOptions

# Docling's local pipelines for pages: with the embedded models, with Docling's models, or without models.

_OCR_MODELS = (
    "PP-OCRv6_det_small.onnx",
    "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "PP-OCRv6_rec_small.onnx",
)


def open_embedded(ocr: bool, threads: int) -> Any:
    """Create the pipeline with layout, table and OCR models from Python packages."""
    from ingest_assets.parsing import plugin
    from ingest_assets.parsing.pdf.pipeline import EmbeddedPdfPipeline

    models = {
        "layout_options": plugin.EmbeddedLayoutOptions(),
        "table_structure_options": plugin.GeometricTableOptions(),
    }
    return _standard(ocr, threads, models, EmbeddedPdfPipeline)


def open_docling(ocr: bool, planned: Sequence[ModelFiles]) -> Any:
    """Create the pipeline with Docling's layout model and TableFormer from the planned folders, and our OCR.

    Docling requires one folder for all models, so a temporary one links to them while they load. It uses one
    thread: torch's results differ in the last bits with two, and several workers use the other cores.
    """
    from docling.datamodel.object_detection_engine_options import TransformersObjectDetectionEngineOptions
    from docling.datamodel.pipeline_options import LayoutObjectDetectionOptions, TableStructureOptions

    for files in planned:  # a worker on another machine has another disk
        local = recheck(files)
        if local.content_hash != files.content_hash:
            fault = local.fault or "its version differs from the planned one"
            raise EngineUnavailable(
                f"Docling's {files.model.name} model in {files.path} is unusable on this worker: {fault}. "
                "Put the models in a folder that every worker can read and set parsing.artifacts_path to it."
            )
    silence_table_model()
    register_plugin()  # for OCR
    # compiled models require a compiler, and their results depend on the host
    engine = TransformersObjectDetectionEngineOptions(compile_model=False)
    models = {
        "layout_options": LayoutObjectDetectionOptions(engine_options=engine),
        "table_structure_options": TableStructureOptions(),
    }
    with tempfile.TemporaryDirectory(prefix="ingest-docling-") as folder:
        for files in planned:
            (Path(folder) / files.model.folder).symlink_to(files.path, target_is_directory=True)
        return _standard(ocr, 1, models | {"artifacts_path": folder})


def open_native(threads: int) -> Any:
    """Create the fast pipeline for the text layer: no reading order, headings, tables or OCR."""
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline

    return NativePdfPipeline(
        NativePdfPipelineOptions(
            parser_threads=threads, generate_page_images=False, generate_picture_images=False
        )
    )


def _standard(ocr: bool, threads: int, models: dict[str, Any], pipeline: Any = None) -> Any:
    from docling.datamodel.accelerator_options import AcceleratorDevice, AcceleratorOptions
    from docling.datamodel.pipeline_options import ThreadedPdfPipelineOptions

    from ingest_assets.parsing import plugin
    from ingest_assets.parsing.page_range_pipeline import PageRangePipeline

    accelerator = AcceleratorOptions(num_threads=threads, device=AcceleratorDevice.CPU)
    return (pipeline or PageRangePipeline)(
        ThreadedPdfPipelineOptions(
            accelerator_options=accelerator,
            allow_external_plugins=True,
            do_ocr=ocr,
            ocr_options=ocr_options() if ocr else plugin.ScannedPageOcrOptions(),
            # one page at a time: a larger batch would wait until it is full
            layout_batch_size=1,
            ocr_batch_size=1,
            table_batch_size=1,
            batch_polling_interval_seconds=0.05,
            queue_max_size=8,
            **models,
        )
    )


def ocr_options() -> Any:
    """Return options for RapidOCR with the weights of its package, so that it downloads nothing."""
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
    """Return RapidOCR's weights for detection, orientation and recognition."""
    spec = find_spec("rapidocr")
    if spec is None or not spec.submodule_search_locations:
        raise OcrUnavailable("rapidocr is not installed. Install it or set parsing.ocr = false.")
    models = Path(spec.submodule_search_locations[0]) / "models"
    det, cls, rec = (models / name for name in _OCR_MODELS)
    for path in (det, cls, rec):
        if not path.is_file():
            raise OcrUnavailable(f"rapidocr's model {path.name} is missing. Reinstall rapidocr.")
    return det, cls, rec


def register_plugin() -> None:
    """Register the plugin with Docling, which finds it by entry point only in an installed product."""
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


_opening = threading.Lock()  # a new pipeline writes to registries that all pipelines share

_BACKENDS = {
    "pdf": "docling_parse_backend.ThreadedDoclingParseDocumentBackend",
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
    "xml_uspto": "xml.uspto_backend.PatentUsptoDocumentBackend",
    "json_docling": "json.docling_json_backend.DoclingJSONBackend",
    "mhtml": "html_backend.HTMLDocumentBackend",
    "boxnote": "boxnote_backend.BoxNoteDocumentBackend",
    "odt": "opendocument_backend.OdtDocumentBackend",
    "ods": "opendocument_backend.OdsDocumentBackend",
    "odp": "opendocument_backend.OdpDocumentBackend",
}


class Pipelines:
    """Docling's pipelines, each created for the first document that needs it and then reused."""

    def __init__(self, options: ParsingOptions, threads: int, engine: PageEngine = EMBEDDED) -> None:
        from docling.datamodel.settings import settings

        self._options = options
        self._threads = threads
        self._engine = engine
        self._pages: dict[EngineName, Any] = {}
        # Docling would load models from the folder in DOCLING_ARTIFACTS_PATH, which can vary by machine.
        settings.artifacts_path = None

    def backend(self, file_format: str) -> Any:
        """Return the class that opens documents of this format."""
        if file_format == "image":
            return image_backend()
        module, name = _BACKENDS[file_format].rsplit(".", 1)
        return getattr(import_module(f"docling.backend.{module}"), name)

    def backend_options(self, file_format: str) -> Any:
        """Return the backend's options: size limits, and how PDFs are rendered. They fetch nothing."""
        from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions

        if file_format != "pdf":
            return backend_options(file_format, self._options)
        reader = self._engine.reader_of(file_format)
        return ThreadedDoclingParseBackendOptions(
            parser_threads=self._threads,
            render_pages=reader != "native",
            render_scale=RENDER_SCALE if reader == "embedded" else 1.0,  # the layout model's input scale
        )

    def pipeline(self, file_format: str) -> Any:
        """Return the pipeline that converts documents of this format."""
        with _opening:
            if file_format not in PAGE_FORMATS:
                return self._simple
            engine = self._engine.reader_of(file_format)
            if engine not in self._pages:
                try:
                    self._pages[engine] = self._open(engine)
                except Exception as error:  # any other error concerns the engine, not the document
                    if isinstance(error, ItemError | MemoryError | ImportError):
                        raise
                    raise EngineUnavailable(
                        f"Cannot open the engine {engine} on this worker ({type(error).__name__}). Check its "
                        "models with `ingest models list` and its libraries with `ingest doctor`."
                    ) from error
            return self._pages[engine]

    def reads_ranges(self, file_format: str) -> bool:
        """True if a document of this format can be read in ranges of pages."""
        return file_format == "pdf" and self._engine.reader_of(file_format) in ("embedded", "docling")

    def parser(self, file_format: str) -> str:
        """Return the value of the table's column `parser` for this format."""
        engine = f"-{self._engine.reader_of(file_format)}" if file_format in PAGE_FORMATS else ""
        return f"docling/{file_format}{engine}"

    def _open(self, engine: EngineName) -> Any:
        if engine == "docling":
            return open_docling(self._options.ocr, self._engine.models)
        if engine == "native":
            return open_native(self._threads)
        if engine == "vlm":
            from ingest_assets.parsing.vlm import open_vlm

            return open_vlm(self._options.vlm)
        return open_embedded(self._options.ocr, self._threads)

    @cached_property
    def _simple(self) -> Any:
        from docling.datamodel.pipeline_options import ConvertPipelineOptions
        from docling.pipeline.simple_pipeline import SimplePipeline

        return SimplePipeline(ConvertPipelineOptions())
