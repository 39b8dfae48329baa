"""ONNX forms of models: where they are kept, and made once for all processes of a machine."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest_assets.embedders.recipe import Recipe
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.identity import canonical_json, hash_file, installed_versions, sha256_text

# Raised when the same libraries would make another file of the same model.
VERSION = "2"
LIBRARIES = ("onnx", "onnxruntime", "torch", "transformers", "tokenizers")
FLOAT32, INT8, NOTE = "model.onnx", "model-int8.onnx", "export.json"
REFUSED = "refused: "  # begins the last line of an export that no provider could help


@dataclass(frozen=True, slots=True)
class Export:
    """A folder with a model's ONNX form; its note says what the files are and how exact they proved."""

    folder: Path

    @property
    def note(self) -> dict[str, Any]:
        """Empty when there is none, or it cannot be read."""
        try:
            note = json.loads((self.folder / NOTE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    def is_whole(self) -> bool:
        """True when every file is as it was written."""
        files = self.note.get("files")
        if not isinstance(files, dict) or not files:
            return False
        return all(_has(self.folder / name, told) for name, told in files.items())

    @property
    def is_exact(self) -> bool | None:
        """Whether the vectors proved to be torch's; none when it has not been tried."""
        return self.note.get("is_exact")


def export_of(recipe: Recipe, exports_path: str) -> Export:
    """Where the model's ONNX form is, or will be: by what the model and the libraries are."""
    libraries = installed_versions(*LIBRARIES)
    key = sha256_text(canonical_json([VERSION, recipe.content_hash, libraries]))[:32]
    return Export(_folder(exports_path) / f"{recipe.name.replace('/', '--')}-{key}")


def require_export(recipe: Recipe, exports_path: str) -> Export:
    """The model's ONNX form, made now if it is not there whole; several processes make it once."""
    export = export_of(recipe, exports_path)
    with _alone(export.folder.with_name(f".{export.folder.name}.lock")):
        if not export.is_whole():
            _make(recipe, export.folder)
    return export


def seal(folder: Path, note: dict[str, Any]) -> None:
    """Write the note, with the files' hashes: only then the export counts."""
    files = {path.name: hash_file(path)[0] for path in sorted(folder.glob("*.onnx*"))}
    (folder / NOTE).write_text(json.dumps({**note, "files": files}, indent=1), encoding="utf-8")


def _make(recipe: Recipe, folder: Path) -> None:
    """In a folder beside, which takes its place when it is complete."""
    for leftover in folder.parent.glob(f".{folder.name}.*.tmp"):
        shutil.rmtree(leftover)
    scratch = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.tmp")
    scratch.mkdir()
    try:
        _export(recipe, scratch)
        if folder.exists():
            shutil.rmtree(folder)
        scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _export(recipe: Recipe, folder: Path) -> None:
    """In a process of its own, for torch takes a gigabyte that embedding never needs again."""
    module = "ingest_assets.embedders.exporting"
    command = [sys.executable, "-m", module, recipe.source, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_own_environment())
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        if lines and lines[-1].startswith(REFUSED):
            raise ConfigError(lines[-1].removeprefix(REFUSED))
        raise ConfigError(
            f"embeddings.dense: {recipe.name} cannot be exported to ONNX "
            f'({lines[-1] if lines else done.returncode}); set embeddings.dense.provider = "local".'
        )


def _own_environment() -> dict[str, str]:
    """The child imports what this process imports."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}  # noqa: PTH109


def _folder(exports_path: str) -> Path:
    if exports_path:
        return Path(exports_path).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "ingest-assets" / "exports"


def _has(path: Path, told: str) -> bool:
    return path.is_file() and hash_file(path)[0] == told


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Held by one process; who dies lets go."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
