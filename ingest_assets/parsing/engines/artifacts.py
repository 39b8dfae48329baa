"""Docling's own models on disk: which files it loads, where they may be, and whether they are whole.

Looked up without Docling, whose import takes seconds; a test holds the names here to the installed version.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ingest_assets.model.hub import hub_cache
from ingest_assets.model.identity import sha256_text
from ingest_assets.model.weights import hash_whole


@dataclass(frozen=True, slots=True)
class DoclingModel:
    """One of Docling's models: the repository it is published in, and the files of it that are loaded."""

    name: str
    title: str
    repo: str
    revision: str
    files: tuple[str, ...]

    @property
    def folder(self) -> str:
        """What Docling calls the repository's folder below an artifacts folder."""
        return self.repo.replace("/", "--")


LAYOUT = DoclingModel(
    "layout",
    "page layout (heron)",
    "docling-project/docling-layout-heron",
    "main",
    ("config.json", "preprocessor_config.json", "model.safetensors"),
)
_TABLEFORMER = "model_artifacts/tableformer/accurate"
TABLEFORMER = DoclingModel(
    "tableformer",
    "table structure (TableFormer, accurate)",
    "docling-project/docling-models",
    "v2.3.0",
    (f"{_TABLEFORMER}/tm_config.json", f"{_TABLEFORMER}/tableformer_accurate.safetensors"),
)
DOCLING_MODELS = (LAYOUT, TABLEFORMER)
ABSENT = "there is no such folder"


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model's files in a folder; with faults, in words, when they are not all there and whole."""

    model: DoclingModel
    path: str
    revision: str = ""
    content_hash: str = ""
    size_bytes: int = 0
    faults: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """True when Docling can load it."""
        return not self.faults

    @property
    def fault(self) -> str:
        """The first thing that is wrong, in words; empty when nothing is."""
        return self.faults[0] if self.faults else ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where models are looked for: an artifacts folder, or the hub's cache."""

    path: Path
    is_cache: bool

    def __str__(self) -> str:
        return f"the hub's cache {self.path}" if self.is_cache else str(self.path)

    def find(self, model: DoclingModel) -> FoundModel:
        """The model as it is here, whole or not."""
        if not self.is_cache:
            folder = self.path / model.folder
            return _examined(model, folder, _pulled_revision(folder, model))
        repository = self.path / f"models--{model.folder}"
        commit = _read_text(repository / "refs" / model.revision).strip()
        folder = repository / "snapshots" / commit if commit else repository
        return _examined(model, folder, commit)


def place_of(artifacts_path: str, environ: Mapping[str, str] = os.environ) -> Place:
    """The configured folder, or the one that Docling's own variable names, or the hub's cache."""
    given = artifacts_path or environ.get("DOCLING_ARTIFACTS_PATH", "")
    if given:
        return Place(Path(given).expanduser().absolute(), is_cache=False)
    return Place(hub_cache(environ), is_cache=True)


def examine_again(found: FoundModel) -> FoundModel:
    """The same folder, as it is on this machine now."""
    return _examined(found.model, Path(found.path), found.revision)


def _examined(model: DoclingModel, folder: Path, revision: str) -> FoundModel:
    hashes, faults, size = [], [], 0
    for name in model.files:
        try:
            status = (folder / name).stat()
            digest = hash_whole(folder / name, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            faults.append(f"{name} is missing")
        except (OSError, ValueError) as error:
            faults.append(f"{name} cannot be used ({getattr(error, 'strerror', None) or error})")
        else:
            hashes.append(f"{name} {digest}")
            size += status.st_size
    if faults == [f"{name} is missing" for name in model.files] and not folder.exists():
        faults = [ABSENT]
    content_hash = "" if faults else sha256_text("\n".join(hashes))
    return FoundModel(model, str(folder), revision, content_hash, size, tuple(faults))


def _pulled_revision(folder: Path, model: DoclingModel) -> str:
    """What the hub's client wrote down beside the files it fetched; nothing for files that were copied."""
    note = folder / ".cache" / "huggingface" / "download" / f"{model.files[-1]}.metadata"
    return _read_text(note).partition("\n")[0].strip()


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
