"""The JSON files of a model folder, read with distrust; `setting` is who named the folder."""

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from ingest_assets.model.errors import ConfigError

# Their first positions are taken by the padding index, so they read fewer tokens than they have positions.
_OFFSET_POSITIONS = {
    "camembert",
    "data2vec-text",
    "esm",
    "ibert",
    "longformer",
    "luke",
    "mpnet",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
}
_FIRST_POSITION = 2  # of most, and of MPNet whatever its padding is
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
_NUMBER_BYTES = {"float16": 2, "bfloat16": 2, "torch.float16": 2, "torch.bfloat16": 2}
_MAX_HEADER_BYTES = 100_000_000  # as the format has it
# They count from token to token, and have no last position.
_RELATIVE_POSITIONS = {"t5", "mt5", "umt5", "longt5", "switch_transformers", "xlnet"}


def read_object(path: Path, setting: str) -> dict[str, Any]:
    """What a file says by names."""
    content = read_json(path, setting)
    if not isinstance(content, dict):
        raise ConfigError(f"{setting}: {path} cannot be used (not a JSON object).")
    return content


def read_json(path: Path, setting: str) -> Any:
    """What a file says; one that is absent or broken is refused in one line."""
    if not path.is_file():
        raise ConfigError(f"{setting}: {path.parent} has no {path.name}; give a complete model folder.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{setting}: {path} cannot be used ({error}).") from None


def read_modules(folder: Path, setting: str) -> list[dict[str, Any]]:
    """The modules that a folder of sentence-transformers lists; none where it is another kind of folder."""
    file = folder / "modules.json"
    if not file.is_file():
        return []
    modules = read_json(file, setting)
    if not isinstance(modules, list) or not all(isinstance(m, dict) and "path" in m for m in modules):
        raise ConfigError(f"{setting}: {file} is no list of modules; give a complete model folder.")
    return modules


def module_kind(module: Mapping[str, Any]) -> str:
    """A module's class, wherever the library keeps it today."""
    return str(module.get("type", "")).rpartition(".")[2]


def number_in(config: Mapping[str, Any], keys: tuple[str, ...], path: Path, setting: str) -> int:
    """A count that a model must have, by the first of its names that is given."""
    value = next((config[key] for key in keys if config.get(key) is not None), None)
    if not isinstance(value, int) or value < 1:
        raise ConfigError(f"{setting}: {path} does not say {keys[0]!r}; give a complete model folder.")
    return value


def float32_bytes(folder: Path, config: Mapping[str, Any]) -> int:
    """How large the weights of a folder are in float32, in whatever form its files have them."""
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    told = str(config.get("dtype") or config.get("torch_dtype"))
    return sum(_numbers_in(file) or file.stat().st_size // _NUMBER_BYTES.get(told, 4) for file in files) * 4


def _numbers_in(file: Path) -> int:
    """How many numbers a safetensors file says that it holds; 0 when it does not say."""
    try:
        with file.open("rb") as opened:
            size = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(min(size, _MAX_HEADER_BYTES)))
        return sum(prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return 0


def positions_of(config: Mapping[str, Any], path: Path, setting: str) -> int:
    """How many tokens the network can read."""
    positions = number_in(config, _POSITIONS, path, setting) - _first_position(config)
    if positions < 1:
        raise ConfigError(f"{setting}: {path} has no position for a token; give a complete model folder.")
    return positions


def has_last_position(config: Mapping[str, Any]) -> bool:
    """True when a text of more tokens than `positions_of` breaks the network."""
    is_told = any(config.get(key) is not None for key in _POSITIONS)
    return is_told and config.get("model_type") not in _RELATIVE_POSITIONS


def _first_position(config: Mapping[str, Any]) -> int:
    kind, padding = config.get("model_type"), config.get("pad_token_id")
    if kind not in _OFFSET_POSITIONS:
        return 0
    return _FIRST_POSITION if kind == "mpnet" or not isinstance(padding, int) else padding + 1
