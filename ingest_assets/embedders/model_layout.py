"""How a model must be used according to its files: pooling, prompts, limits."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_files import (
    cached_by_files,
    content_hash_of,
    find_folder,
    has_last_position,
    module_kind,
    name_of,
    number_in,
    positions_of,
    read_modules,
    read_object,
    require_no_code,
)
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions

SETTING = "embeddings.dense.model"
_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# Names in a pooling module's file, old and new style, in the order in which the library joins them.
_POOLINGS = {
    "cls": ("pooling_mode_cls_token", "cls"),
    "max": ("pooling_mode_max_tokens", "max"),
    "mean": ("pooling_mode_mean_tokens", "mean"),
    "mean_sqrt_length": ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
    "weighted_mean": ("pooling_mode_weightedmean_tokens", "weightedmean"),
    "last": ("pooling_mode_lasttoken", "lasttoken"),
}
_SUPPORTED_MODULES = {"Transformer", "Pooling", "Normalize"}
_PASSAGE_PROMPTS = ("document", "passage", "corpus")


@dataclass(frozen=True, slots=True)
class ModelLayout:
    """A model folder and how to use it; `path` contains config, weights and tokenizer."""

    source: str
    name: str
    path: str
    content_hash: str
    config: dict[str, Any]
    width: int
    max_tokens: int
    pooling: tuple[str, ...]
    pools_prompt: bool
    query_prefix: str
    passage_prefix: str
    lower_case: bool
    normalizes: bool
    other_modules: tuple[str, ...]
    truncation_side: str = "right"

    @property
    def model_id(self) -> str:
        return f"{self.name}@{self.content_hash[:12]}"

    @property
    def vocab_size(self) -> int | None:
        """The size of the network's vocabulary; None if unknown."""
        size = self.config.get("vocab_size")
        return size if isinstance(size, int) and size > 0 else None

    @property
    def pad_id(self) -> int:
        return int(self.config.get("pad_token_id") or 0)

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))


@cached_by_files(SETTING)
def read_layout(model: str) -> ModelLayout:
    """Read the files of a model folder; `ConfigError` if one is missing or unsupported."""
    folder = find_folder(model, SETTING)
    require_no_code(folder, SETTING)
    modules = read_modules(folder, SETTING)
    if not has_transformer(folder):
        raise ConfigError(
            f"{SETTING}: {folder} has {', '.join(map(module_kind, modules))}, which this provider does not "
            'support. Set embeddings.dense.provider = "sentence-transformers".'
        )
    path = folder / next((m["path"] for m in modules if module_kind(m) == "Transformer"), "")
    config = _read(path / "config.json")
    sentence = _read(path / "sentence_bert_config.json", optional=True)
    _require_files(path)
    pools = next((m["path"] for m in modules if module_kind(m) == "Pooling"), "1_Pooling")
    pooling = _read(folder / pools / "config.json", optional=True)
    prompts = _read(folder / "config_sentence_transformers.json", optional=True)
    query, passage = _prefixes(prompts)
    return ModelLayout(
        source=model,
        name=name_of(model, folder),
        path=str(path),
        content_hash=content_hash_of(folder, SETTING),
        config=config,
        width=number_in(config, ("hidden_size", "dim", "d_model", "n_embd"), path, SETTING),
        max_tokens=_max_tokens(path, config, sentence),
        pooling=_poolings(pooling, path),
        pools_prompt=bool(pooling.get("include_prompt", True)),
        query_prefix=query,
        passage_prefix=passage,
        lower_case=bool(sentence.get("do_lower_case")),
        normalizes=any(module_kind(m) == "Normalize" for m in modules),
        other_modules=tuple(kind for m in modules if (kind := module_kind(m)) not in _SUPPORTED_MODULES),
        truncation_side=_truncation_side(path),
    )


@dataclass(frozen=True, slots=True)
class Usage:
    """A layout with the settings applied."""

    pooling: tuple[str, ...]
    query_prefix: str
    passage_prefix: str
    max_tokens: int
    dim: int
    refuses_long: bool
    normalized: bool


def usage_of(layout: ModelLayout, options: DenseOptions) -> Usage:
    """Apply the settings to a layout; `ConfigError` if the model cannot satisfy them."""
    pooling = layout.pooling if options.pooling == "auto" else (options.pooling,)
    width = layout.width * len(pooling)
    if options.dim is not None and options.dim > width:
        raise ConfigError(
            f"embeddings.dense.dim: {options.dim} is more than the {width} dimensions of {layout.name}."
        )
    if options.max_tokens is not None and options.max_tokens > layout.max_tokens:
        raise ConfigError(
            f"embeddings.dense.max_tokens: {options.max_tokens} is more than the {layout.max_tokens} tokens "
            f"that {layout.name} reads."
        )
    return Usage(
        pooling=pooling,
        query_prefix=layout.query_prefix if options.query_prefix is None else options.query_prefix,
        passage_prefix=layout.passage_prefix if options.passage_prefix is None else options.passage_prefix,
        max_tokens=options.max_tokens or layout.max_tokens,
        dim=options.dim or width,
        refuses_long=options.truncation == "refuse",
        normalized=options.normalize or layout.normalizes,
    )


def has_transformer(folder: Path) -> bool:
    """False for a folder whose modules include no network of transformers, such as static word vectors."""
    modules = read_modules(folder, SETTING)
    return not modules or any(module_kind(m) == "Transformer" for m in modules)


def module_outputs(folder: Path) -> list[int]:
    """Return the output widths of a folder's modules, in order."""
    paths = [m["path"] for m in read_modules(folder, SETTING)]
    configs = [_read(folder / path / "config.json", optional=True) for path in paths if path]
    return [config["out_features"] for config in configs if isinstance(config.get("out_features"), int)]


def _require_files(path: Path) -> None:
    if not (path / "tokenizer.json").is_file():
        raise ConfigError(
            f"{SETTING}: {path} has no tokenizer.json. Set a complete model folder, or create the file with "
            "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)."
        )
    if not any((path / name).is_file() for name in _WEIGHTS):
        raise ConfigError(f"{SETTING}: {path} has no {_WEIGHTS[0]}. Set a complete model folder.")


def _poolings(pooling: dict[str, Any], path: Path) -> tuple[str, ...]:
    """Return the poolings; without a setting, `mean`, as in sentence-transformers."""
    modes = pooling.get("pooling_mode")
    if modes is None:
        enabled = [name for name, (old, _) in _POOLINGS.items() if pooling.get(old)]
        return tuple(enabled) or ("mean",)
    names = {new: name for name, (_, new) in _POOLINGS.items()}
    listed = [modes] if isinstance(modes, str) else list(modes)
    unknown = [mode for mode in listed if mode not in names]
    if not listed or unknown:
        mode = repr(unknown[0]) if unknown else "nothing"
        raise ConfigError(f"{SETTING}: {path} has unknown pooling {mode}. Set embeddings.dense.pooling.")
    return tuple(names[mode] for mode in listed)


def _prefixes(config: dict[str, Any]) -> tuple[str, str]:
    """Return the prompts for queries and passages, by name or from a default prompt that is for both."""
    prompts = {name: text for name, text in (config.get("prompts") or {}).items() if isinstance(text, str)}
    default = config.get("default_prompt_name")
    shared = prompts.get(default, "") if default not in ("query", *_PASSAGE_PROMPTS) else ""
    passage = next((prompts[name] for name in _PASSAGE_PROMPTS if name in prompts), shared)
    return prompts.get("query", shared), passage


def _max_tokens(path: Path, config: dict[str, Any], sentence: dict[str, Any]) -> int:
    """Return the lowest limit in the files: some state more than the network has positions for."""
    if sentence.get("max_seq_length"):
        limit = number_in(sentence, ("max_seq_length",), path, SETTING)
        return min(limit, positions_of(config, path, SETTING)) if has_last_position(config) else limit
    positions = positions_of(config, path, SETTING)
    length = _read(path / "tokenizer_config.json", optional=True).get("model_max_length")
    return min(positions, length) if isinstance(length, int) and length > 0 else positions


def _truncation_side(path: Path) -> str:
    """Return the end at which texts are cut, by `tokenizer_config.json`, otherwise `tokenizer.json`."""
    side = _read(path / "tokenizer_config.json", optional=True).get("truncation_side")
    if side is None:
        truncation = _read(path / "tokenizer.json").get("truncation")
        side = truncation.get("direction") if isinstance(truncation, dict) else None
    return "left" if str(side).lower() == "left" else "right"


def _read(path: Path, *, optional: bool = False) -> dict[str, Any]:
    return {} if optional and not path.is_file() else read_object(path, SETTING)


# What planning needs to know about a model folder.


# transformers also loads their decoder, which needs its own input; sentence-transformers does not.
_ENCODER_DECODERS = {"t5", "mt5", "umt5", "longt5", "switch_transformers"}
_CHANGES_NO_PASSAGE = {"query_prefix", "refuses_long"}


def facts_of(
    provider: str, layout: ModelLayout, usage: Usage, libraries: Mapping[str, str], **more: Any
) -> DenseFacts:
    """Return facts whose identity contains what changes a vector, not the device or the speed."""
    identity = {
        "provider": provider,
        "model": layout.content_hash,
        **{key: value for key, value in asdict(usage).items() if key not in _CHANGES_NO_PASSAGE},
        **({} if layout.truncation_side == "right" else {"truncation_side": layout.truncation_side}),
        **more,
    }
    return DenseFacts(
        provider=provider,
        model_id=layout.model_id,
        dim=usage.dim,
        max_tokens=usage.max_tokens,
        tokenizer=layout.path,
        normalized=usage.normalized,
        identity=identity,
        libraries=libraries,
        passage_prefix=usage.passage_prefix,
    )


def unsupported_parts(layout: ModelLayout, usage: Usage) -> list[str]:
    """Return the parts of a folder that only sentence-transformers supports."""
    parts = list(layout.other_modules)
    if layout.model_type in _ENCODER_DECODERS:
        parts.append("a decoder to be skipped")
    if not layout.pools_prompt and (usage.query_prefix or usage.passage_prefix):
        parts.append("pooling without the prompt")
    return parts


def require_supported(layout: ModelLayout, usage: Usage) -> None:
    """Raise `ConfigError` if a part of the folder would be ignored."""
    parts = unsupported_parts(layout, usage)
    if parts:
        raise ConfigError(
            f"embeddings.dense.model: {layout.name} has {parts[0]}, which this provider does not support. "
            'Set embeddings.dense.provider = "sentence-transformers".'
        )
