"""XML entities: declarations that multiply, and those that point elsewhere. None is expanded or fetched."""

import re
from collections import Counter
from collections.abc import Mapping
from math import inf

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.safety.bombs import MEBIBYTE, refuse_bomb

# Markup is text: less of it harms its parser than of an archive.
HARMLESS_BYTES = MEBIBYTE
MAX_DEPTH = 50
_NAME = r"[^\s;&%\"'<>]+"
_DECLARATION = re.compile(
    rf"<!ENTITY\s+(?:%\s+)?({_NAME})\s+(?:\"([^\"]*)\"|'([^']*)'|(?:SYSTEM|PUBLIC)\b)", re.IGNORECASE
)
_REFERENCE = re.compile(rf"[&%]({_NAME});")
_WIDE = {
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"<\x00": "utf-16-le",
    b"\x00<": "utf-16-be",
}


def check_entities(what: str, content: bytes, options: ParsingOptions) -> tuple[str, ...]:
    """Refuse markup whose own entities unfold it to too much; say when some lead out of the file."""
    text = content.decode(_WIDE.get(content[:2], "latin-1"), "replace")
    if "<!ENTITY" not in text.upper():
        return ()
    values: dict[str, str] = {}
    external = 0
    for name, double, single in _DECLARATION.findall(text):
        external += not (double or single)
        values.setdefault(name, double or single)  # as in XML, the first declaration counts
    body = _DECLARATION.sub("", text)
    refuse_bomb(what, len(content), _unfolded(body, _sizes(values)), options, HARMLESS_BYTES)
    return (f"W_XML_EXTERNAL_ENTITY: {external} declared, none fetched",) if external else ()


def _unfolded(text: str, sizes: Mapping[str, float]) -> float:
    return len(text) + _referred(Counter(_REFERENCE.findall(text)), sizes)


def _referred(used: Mapping[str, int], sizes: Mapping[str, float]) -> float:
    return sum(count * sizes.get(name, 0) for name, count in used.items())


def _sizes(values: Mapping[str, str]) -> dict[str, float]:
    """How long each entity is with everything in it written out; endless for one that holds itself."""
    used = {name: Counter(_REFERENCE.findall(value)) for name, value in values.items()}
    sizes: dict[str, float] = {}
    for _ in range(MAX_DEPTH):  # each round looks one level deeper
        longer = {name: len(value) + _referred(used[name], sizes) for name, value in values.items()}
        if longer == sizes:
            return sizes
        sizes = longer
    deeper = {name: len(value) + _referred(used[name], sizes) for name, value in values.items()}
    return {name: size if size == sizes[name] else inf for name, size in deeper.items()}
