"""The JSON files of a model folder, read with distrust; `setting` is who named the folder."""

import json
from collections.abc import Mapping
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


def number_in(config: Mapping[str, Any], keys: tuple[str, ...], path: Path, setting: str) -> int:
    """A count that a model must have, by the first of its names that is given."""
    value = next((config[key] for key in keys if config.get(key) is not None), None)
    if not isinstance(value, int) or value < 1:
        raise ConfigError(f"{setting}: {path} does not say {keys[0]!r}; give a complete model folder.")
    return value


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
