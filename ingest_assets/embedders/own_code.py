"""Model folders that bring code of their own: it is never run, and nobody is asked whether to run it.

A model whose network the libraries know by name may bring another one of that name: its weights would load
and make other vectors than it was trained for. So whatever names code is refused, needed or not.
"""

from collections.abc import Iterable
from pathlib import Path

from ingest_assets.embedders.model_files import read_json
from ingest_assets.model.errors import ConfigError

_CODE_OF_TRANSFORMERS = "auto_map"
_KNOWN_MODULES = "sentence_transformers."


def require_no_code(folder: Path, setting: str) -> None:
    """Refuse a model folder of which any file names code."""
    _require_none_in(sorted(folder.rglob("*config.json")), folder, setting)
    listing = folder / "modules.json"
    modules = read_json(listing, setting) if listing.is_file() else []
    for module in modules if isinstance(modules, list) else []:
        kind = str(module.get("type", "")) if isinstance(module, dict) else ""
        if kind and not kind.startswith(_KNOWN_MODULES):
            raise _refusal(folder, f"{kind} in {listing.name}", setting)


def require_no_tokenizer_code(folder: Path, setting: str) -> None:
    """Refuse a tokenizer that names code; the model beside it is not loaded."""
    _require_none_in([folder / "tokenizer_config.json"], folder, setting)


def _require_none_in(files: Iterable[Path], folder: Path, setting: str) -> None:
    for file in files:
        content = read_json(file, setting) if file.is_file() else {}
        if isinstance(content, dict) and content.get(_CODE_OF_TRANSFORMERS):
            place = file.relative_to(folder).as_posix()
            raise _refusal(folder, f"{_CODE_OF_TRANSFORMERS} in {place}", setting)


def _refusal(folder: Path, named: str, setting: str) -> ConfigError:
    return ConfigError(
        f"{setting}: {folder} brings code of its own ({named}), which is never run; give a model that the "
        "libraries know without it."
    )
