"""Web pages: their encoding, their entities, and elements that are nested too deep."""

import codecs

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.safety.entities import check_entities
from ingest_assets.parsing.safety.nesting import FLATTENED, flattened, is_too_deep
from ingest_assets.parsing.safety.texts import decode_text


def check_web_page(content: bytes, options: ParsingOptions) -> tuple[bytes, tuple[str, ...]]:
    """The page as it can be read, and what was done for it; unchanged when nothing had to be."""
    warnings = check_entities("The page", content, options)
    decoded = decode_text(content, _declared_encoding(content))
    warnings += decoded.warnings
    if is_too_deep(decoded.text):
        return _marked(flattened(decoded.text)), (*warnings, FLATTENED)
    return _marked(decoded.text) if decoded.warnings else content, warnings


def _declared_encoding(content: bytes) -> str:
    from bs4.dammit import EncodingDetector

    return EncodingDetector.find_declared_encoding(content, is_html=True, search_entire_document=False) or ""


def _marked(text: str) -> bytes:
    """With a byte-order mark, which wins over whatever the page declares."""
    return codecs.BOM_UTF8 + text.encode("utf-8", "replace")
