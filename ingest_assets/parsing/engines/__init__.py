"""Who reads pages: the embedded models, Docling's own, its model-free pipeline, or a vision model."""

from ingest_assets.parsing.engines.choice import EMBEDDED, PAGE_FORMATS, PageEngine, choose_engine
from ingest_assets.parsing.engines.pipelines import Engines

__all__ = ["EMBEDDED", "PAGE_FORMATS", "Engines", "PageEngine", "choose_engine"]
