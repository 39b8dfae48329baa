"""Ids and hashes: stable, lossless, and the same on every machine."""

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

UNIT_SEPARATOR = "\u241f"  # the visible sign, not the control character: part of every chunk id
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256_text(text: str) -> str:
    """Hex sha256 of a string's UTF-8 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical_json(value: Any) -> str:
    """One text per value: sorted keys, no spaces, no escapes."""
    return _CANONICAL.encode(value)


def file_doc_id(source: str, relative_path: str) -> str:
    """`<source>:<relative POSIX path>` in NFC."""
    return unicodedata.normalize("NFC", f"{source}:{relative_path}")


def document_name(uri: str) -> str:
    """What a document is called: the last segment of its address, or else the host."""
    address = urlsplit(uri)
    name = PurePosixPath(unquote(address.path.rpartition("/")[2])).name
    return name or address.hostname or uri


def chunk_id(doc_id: str, ordinal: int, text: str) -> str:
    """The ordinal keeps the same text twice in one document apart."""
    content = UNIT_SEPARATOR.join((doc_id, str(ordinal), unicodedata.normalize("NFKC", text)))
    return str(uuid.UUID(bytes=hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()[:16]))


def fingerprints(
    stage: str, stage_version: str, config: Mapping[str, Any], libraries: Mapping[str, str]
) -> Callable[[str], str]:
    """Why an item is current, by what it reads; so staleness flows down the graph.

    All else is written and hashed once for many items.
    """
    head = canonical_json([stage, stage_version, dict(config), dict(libraries)]).removesuffix("]")
    begun = hashlib.sha256(head.encode("utf-8", "surrogatepass"))

    def of(upstream: str) -> str:
        digest = begun.copy()
        digest.update(f",{canonical_json(upstream)}]".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    return of


def installed_versions(*packages: str) -> dict[str, str]:
    """Versions of installed packages, without importing them; `absent` if not installed."""
    return {package: _version(package) for package in packages}


@functools.cache
def _version(package: str) -> str:
    """Taken once: a process runs what it has loaded, whatever is installed meanwhile."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def hash_file(path: Path, head_bytes: int = 0) -> tuple[str, bytes]:
    """sha256 of a file's bytes, in constant memory, and the first of them."""
    digest, head = hashlib.sha256(), b""
    with path.open("rb") as stream:
        while block := stream.read(1024 * 1024):
            head = head or block[:head_bytes]
            digest.update(block)
    return digest.hexdigest(), head


@functools.cache
def code_version() -> str:
    """Of the code that this process runs: taken once, as its sources may be replaced on disk meanwhile."""
    return code_version_on_disk()


def code_version_on_disk() -> str:
    """This package's version and a hash of its own sources: `0.1.0+3f2a…`."""
    package = Path(__file__).parents[1]
    sources = sorted(package.rglob("*.py"))
    hashes = [[path.relative_to(package).as_posix(), hash_file(path)[0]] for path in sources]
    return f"{installed_versions('ingest-assets')['ingest-assets']}+{sha256_text(canonical_json(hashes))}"


# Scripts that are written without spaces: where words end, no character says. For a set of the module
# `regex`; a mark that several scripts share (scx) is in it too.
UNSPACED = "".join(
    rf"\p{{scx={script}}}" for script in ("Hani", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr")
)
