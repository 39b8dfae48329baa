"""Which of Docling's backends and pipelines reads which format, with every fetch switched off."""

import threading
from functools import cached_property
from importlib import import_module
from typing import Any

from ingest_assets.model.errors import ItemError
from ingest_assets.model.options import EngineName, ParsingOptions
from ingest_assets.parsing.embedded.layout import RENDER_SCALE
from ingest_assets.parsing.engines.choice import EMBEDDED, PAGE_FORMATS, PageEngine
from ingest_assets.parsing.engines.errors import EngineUnavailable
from ingest_assets.parsing.engines.pages import open_docling, open_embedded, open_native
from ingest_assets.parsing.safety.backends import backend_options
from ingest_assets.parsing.safety.pictures import image_backend

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
        self._options = options
        self._threads = threads
        self._engine = engine
        self._pages: dict[EngineName, Any] = {}
        _forget_environment()

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
                self._pages[engine] = self._opened(engine)
            return self._pages[engine]

    def reads_ranges(self, kind: str) -> bool:
        """True when a document of this format can be read by ranges of pages."""
        return kind == "pdf" and self._engine.reader_of(kind) in ("embedded", "docling")

    def parser(self, kind: str) -> str:
        """Who reads documents of this format, as the table says it."""
        return f"docling/{kind}-{self._engine.reader_of(kind)}" if kind in PAGE_FORMATS else f"docling/{kind}"

    def _opened(self, engine: EngineName) -> Any:
        """Whatever keeps an engine from opening is no document's fault, in our words."""
        try:
            return self._open(engine)
        except Exception as error:
            if isinstance(error, ItemError | MemoryError | ImportError):
                raise
            raise EngineUnavailable(
                f"The engine {engine} cannot be opened on this worker ({type(error).__name__}); look at its "
                "models with `ingest models list` and at its libraries with `ingest doctor`."
            ) from error

    def _open(self, engine: EngineName) -> Any:
        if engine == "docling":
            return open_docling(self._options.ocr, self._engine.models)
        if engine == "native":
            return open_native(self._threads)
        if engine == "vlm":
            from ingest_assets.parsing.engines.vlm import open_vlm

            return open_vlm(self._options.vlm)
        return open_embedded(self._options.ocr, self._threads)

    @cached_property
    def _simple(self) -> Any:
        from docling.datamodel.pipeline_options import ConvertPipelineOptions
        from docling.pipeline.simple_pipeline import SimplePipeline

        return SimplePipeline(ConvertPipelineOptions())


def _forget_environment() -> None:
    """Docling would look for models where its own variable says, on each machine anew."""
    from docling.datamodel.settings import settings

    settings.artifacts_path = None
