"""Ids, hashes and fingerprints: the same on every machine."""

import functools
import hashlib
import json
import unicodedata
import uuid
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

UNIT_SEPARATOR = "\u241f"  # the visible symbol, not the control character; part of every chunk id
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256_text(text: str) -> str:
    """Return the hex sha256 of a string's UTF-8 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical_json(value: Any) -> str:
    """Return the only JSON form of a value: sorted keys, no spaces, no escapes."""
    return _CANONICAL.encode(value)


def file_doc_id(source: str, relative_path: str) -> str:
    """Return `<source>:<relative POSIX path>` in NFC."""
    return unicodedata.normalize("NFC", f"{source}:{relative_path}")


def document_name(uri: str) -> str:
    """Return the last path segment of a URI, or the host if there is none."""
    parts = urlsplit(uri)
    name = PurePosixPath(unquote(parts.path.rpartition("/")[2])).name
    return name or parts.hostname or uri


def chunk_id(doc_id: str, ordinal: int, text: str) -> str:
    """Return the id of a chunk; the ordinal distinguishes equal texts in one document."""
    content = UNIT_SEPARATOR.join((doc_id, str(ordinal), unicodedata.normalize("NFKC", text)))
    return str(uuid.UUID(bytes=hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()[:16]))


def fingerprints(
    stage: str, stage_version: str, config: Mapping[str, Any], libraries: Mapping[str, str]
) -> Callable[[str], str]:
    """Return a function from the fingerprint of an item's input to that of the item.

    The constant part is hashed once for all items.
    """
    head = canonical_json([stage, stage_version, dict(config), dict(libraries)]).removesuffix("]")
    head_digest = hashlib.sha256(head.encode("utf-8", "surrogatepass"))

    def fingerprint(input_fingerprint: str) -> str:
        digest = head_digest.copy()
        digest.update(f",{canonical_json(input_fingerprint)}]".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    return fingerprint


def installed_versions(*packages: str) -> dict[str, str]:
    """Return package versions without importing the packages; `absent` if not installed."""
    return {package: _version(package) for package in packages}


@functools.cache
def _version(package: str) -> str:
    """Cached: a process keeps the code it has loaded, even if another version is installed meanwhile."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def hash_file(path: Path, head_bytes: int = 0) -> tuple[str, bytes]:
    """Return the sha256 of a file, read in blocks, and its first `head_bytes` bytes."""
    digest, head = hashlib.sha256(), b""
    with path.open("rb") as stream:
        while block := stream.read(1024 * 1024):
            head = head or block[:head_bytes]
            digest.update(block)
    return digest.hexdigest(), head


@functools.cache
def code_version() -> str:
    """Return the version of the running code. Cached, since the sources on disk may be replaced meanwhile."""
    return code_version_on_disk()


def code_version_on_disk() -> str:
    """Return this package's version and a hash of its sources: `0.1.0+3f2a…`."""
    package = Path(__file__).parents[1]
    sources = sorted(package.rglob("*.py"))
    hashes = [[path.relative_to(package).as_posix(), hash_file(path)[0]] for path in sources]
    return f"{installed_versions('ingest-assets')['ingest-assets']}+{sha256_text(canonical_json(hashes))}"


# Scripts written without spaces between words, for a character set of the module `regex`; `scx` includes
# marks that several scripts share.
UNSPACED = "".join(
    rf"\p{{scx={script}}}" for script in ("Hani", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr")
)
