"""Who reads pages: the embedded models, Docling's own, its model-free pipeline, or a vision model behind HTTP."""

from ingest_assets.parsing.engines.pipelines import PAGE_FORMATS, Engines

__all__ = ["PAGE_FORMATS", "Engines"]
