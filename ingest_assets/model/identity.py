"""Ids and hashes: stable, lossless, and the same on every machine."""

import hashlib
import json
import unicodedata
import uuid
from collections.abc import Mapping
from typing import Any

UNIT_SEPARATOR = "\u241f"


def sha256_text(text: str) -> str:
    """Hex sha256 of a string's UTF-8 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical_json(value: Any) -> str:
    """One text per value: sorted keys, no spaces, no escapes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def file_doc_id(source: str, relative_path: str) -> str:
    """`<source>:<relative POSIX path>` in NFC."""
    return unicodedata.normalize("NFC", f"{source}:{relative_path}")


def chunk_id(doc_id: str, ordinal: int, text: str) -> str:
    """The ordinal keeps the same text twice in one document apart."""
    content = UNIT_SEPARATOR.join((doc_id, str(ordinal), unicodedata.normalize("NFKC", text)))
    return str(uuid.UUID(bytes=hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()[:16]))


def fingerprint(
    stage: str, version: str, config: Mapping[str, Any], libraries: Mapping[str, str], upstream: str
) -> str:
    """Why an item is current; chained through `upstream`, so that staleness flows down the graph."""
    return sha256_text(canonical_json([stage, version, dict(config), dict(libraries), upstream]))
