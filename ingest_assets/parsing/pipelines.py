"""Which of Docling's backends and pipelines reads which format, with every fetch switched off."""

import tempfile
import threading
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ingest_assets.core.errors import ItemError
from ingest_assets.parsing.engines import EMBEDDED, PAGE_FORMATS, FoundModel, PageEngine, examine_again
from ingest_assets.parsing.errors import EngineUnavailable, OcrUnavailable
from ingest_assets.parsing.guard.images import image_backend
from ingest_assets.parsing.guard.limits import backend_options
from ingest_assets.parsing.libraries import silence_table_model
from ingest_assets.parsing.pdf.layout import RENDER_SCALE
from ingest_assets.settings.parsing import EngineName, ParsingOptions

# Docling's pipelines for pages that run here: with the embedded models, with Docling's own, with none.

_OCR_MODELS = (
    "PP-OCRv6_det_small.onnx",
    "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "PP-OCRv6_rec_small.onnx",
)


def open_embedded(ocr: bool, threads: int) -> Any:
    """Layout, tables and OCR from packages: nothing is downloaded."""
    from ingest_assets.parsing import plugin
    from ingest_assets.parsing.pdf.pipeline import EmbeddedPdfPipeline

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

    for each in found:  # workers on other machines have other disks
        here = examine_again(each)
        if here.content_hash != each.content_hash:
            fault = here.fault or "is another version than where the plan was made"
            raise EngineUnavailable(
                f"Docling's {each.model.name} model is not on this worker as planned: in {each.path} "
                f"{fault}; put the models where every worker sees them, and set parsing.artifacts_path to it."
            )
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


def _standard(ocr: bool, threads: int, models: dict[str, Any], pipeline: Any = None) -> Any:
    from docling.datamodel.accelerator_options import AcceleratorDevice, AcceleratorOptions
    from docling.datamodel.pipeline_options import ThreadedPdfPipelineOptions

    from ingest_assets.parsing import plugin
    from ingest_assets.parsing.page_range_pipeline import RangedPdfPipeline

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


_opening = threading.Lock()  # a pipeline fills registries that all of them share

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


class Engines:
    """Docling's pipelines, each made when the first document asks for it and kept warm."""

    def __init__(self, options: ParsingOptions, threads: int, engine: PageEngine = EMBEDDED) -> None:
        from docling.datamodel.settings import settings

        self._options = options
        self._threads = threads
        self._engine = engine
        self._pages: dict[EngineName, Any] = {}
        # Docling would look for models where its own variable says, on each machine anew.
        settings.artifacts_path = None

    def backend(self, kind: str) -> Any:
        """The class that opens documents of this format."""
        if kind == "image":
            return image_backend()
        module, name = _BACKENDS[kind].rsplit(".", 1)
        return getattr(import_module(f"docling.backend.{module}"), name)

    def backend_options(self, kind: str) -> Any:
        """Docling's defaults fetch nothing, remote or local; limits are set, and how PDFs are drawn."""
        from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions

        if kind != "pdf":
            return backend_options(kind, self._options)
        reader = self._engine.reader_of(kind)
        return ThreadedDoclingParseBackendOptions(
            parser_threads=self._threads,
            render_pages=reader != "native",
            render_scale=RENDER_SCALE if reader == "embedded" else 1.0,  # the scale the layout model asks for
        )

    def pipeline(self, kind: str) -> Any:
        """The pipeline that converts documents of this format."""
        with _opening:
            if kind not in PAGE_FORMATS:
                return self._simple
            engine = self._engine.reader_of(kind)
            if engine not in self._pages:
                try:
                    self._pages[engine] = self._open(engine)
                except Exception as error:  # whatever keeps an engine from opening is no document's fault
                    if isinstance(error, ItemError | MemoryError | ImportError):
                        raise
                    raise EngineUnavailable(
                        f"The engine {engine} cannot be opened on this worker ({type(error).__name__}); look "
                        "at its models with `ingest models list` and at its libraries with `ingest doctor`."
                    ) from error
            return self._pages[engine]

    def reads_ranges(self, kind: str) -> bool:
        """True when a document of this format can be read by ranges of pages."""
        return kind == "pdf" and self._engine.reader_of(kind) in ("embedded", "docling")

    def parser(self, kind: str) -> str:
        """Who reads documents of this format, as the table says it."""
        return f"docling/{kind}-{self._engine.reader_of(kind)}" if kind in PAGE_FORMATS else f"docling/{kind}"

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
