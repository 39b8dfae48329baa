"""How a model wants to be used: pooling, prompts, limits, as its own files say."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_files import (
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
    while_unchanged,
)
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions

SETTING = "embeddings.dense.model"
_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# By the names in a pooling module's file, old style and new, in the order in which they are joined.
_POOLINGS = {
    "cls": ("pooling_mode_cls_token", "cls"),
    "max": ("pooling_mode_max_tokens", "max"),
    "mean": ("pooling_mode_mean_tokens", "mean"),
    "mean_sqrt_length": ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
    "weighted_mean": ("pooling_mode_weightedmean_tokens", "weightedmean"),
    "last": ("pooling_mode_lasttoken", "lasttoken"),
}
_OWN_MODULES = {"Transformer", "Pooling", "Normalize"}
_PASSAGE_PROMPTS = ("document", "passage", "corpus")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model folder and how its files say to use it; `path` holds config, weights and tokenizer."""

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
    def words(self) -> int | None:
        """How many tokens the network knows, if its file says so."""
        told = self.config.get("vocab_size")
        return told if isinstance(told, int) and told > 0 else None

    @property
    def pad_id(self) -> int:
        return int(self.config.get("pad_token_id") or 0)

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))


@while_unchanged(SETTING)
def read_recipe(model: str) -> Recipe:
    """What the files of a model say; a folder that lacks one is refused in one line."""
    folder = find_folder(model, SETTING)
    require_no_code(folder, SETTING)
    modules = read_modules(folder, SETTING)
    if not has_transformer(folder):
        raise ConfigError(
            f"{SETTING}: {folder} is of {', '.join(map(module_kind, modules))}, which this provider does not "
            'run; set embeddings.dense.provider = "sentence-transformers".'
        )
    path = folder / next((m["path"] for m in modules if module_kind(m) == "Transformer"), "")
    config = _read(path / "config.json")
    sentence = _read(path / "sentence_bert_config.json", optional=True)
    _require_files(path)
    pools = next((m["path"] for m in modules if module_kind(m) == "Pooling"), "1_Pooling")
    pooling = _read(folder / pools / "config.json", optional=True)
    prompts = _read(folder / "config_sentence_transformers.json", optional=True)
    query, passage = _prefixes(prompts)
    return Recipe(
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
        other_modules=tuple(kind for m in modules if (kind := module_kind(m)) not in _OWN_MODULES),
        truncation_side=_truncation_side(path),
    )


@dataclass(frozen=True, slots=True)
class Usage:
    """A recipe with the settings' wishes put in: what is really done."""

    pooling: tuple[str, ...]
    query_prefix: str
    passage_prefix: str
    max_tokens: int
    dim: int
    refuses_long: bool
    normalized: bool


def usage_of(recipe: Recipe, options: DenseOptions) -> Usage:
    """The settings win over the files; what the model cannot do is refused."""
    pooling = recipe.pooling if options.pooling == "auto" else (options.pooling,)
    width = recipe.width * len(pooling)
    if options.dim is not None and options.dim > width:
        raise ConfigError(f"embeddings.dense.dim: {options.dim} is more than the {width} of {recipe.name}.")
    if options.max_tokens is not None and options.max_tokens > recipe.max_tokens:
        raise ConfigError(
            f"embeddings.dense.max_tokens: {options.max_tokens} is more than the {recipe.max_tokens} that "
            f"{recipe.name} reads."
        )
    return Usage(
        pooling=pooling,
        query_prefix=recipe.query_prefix if options.query_prefix is None else options.query_prefix,
        passage_prefix=recipe.passage_prefix if options.passage_prefix is None else options.passage_prefix,
        max_tokens=options.max_tokens or recipe.max_tokens,
        dim=options.dim or width,
        refuses_long=options.truncation == "refuse",
        normalized=options.normalize or recipe.normalizes,
    )


def has_transformer(folder: Path) -> bool:
    """False for a folder that lists its modules and no network of transformers among them: static word
    vectors, images."""
    modules = read_modules(folder, SETTING)
    return not modules or any(module_kind(m) == "Transformer" for m in modules)


def module_outputs(folder: Path) -> list[int]:
    """The widths that further layers of a folder give, in their order."""
    paths = [m["path"] for m in read_modules(folder, SETTING)]
    configs = [_read(folder / path / "config.json", optional=True) for path in paths if path]
    return [config["out_features"] for config in configs if isinstance(config.get("out_features"), int)]


def _require_files(path: Path) -> None:
    if not (path / "tokenizer.json").is_file():
        raise ConfigError(
            f"{SETTING}: {path} has no tokenizer.json; give a complete model folder, or make the file with "
            "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)."
        )
    if not any((path / name).is_file() for name in _WEIGHTS):
        raise ConfigError(f"{SETTING}: {path} has no {_WEIGHTS[0]}; give a complete model folder.")


def _poolings(pooling: dict[str, Any], path: Path) -> tuple[str, ...]:
    """Mean is what sentence-transformers takes where no file says anything."""
    modes = pooling.get("pooling_mode")
    if modes is None:
        found = [name for name, (old, _) in _POOLINGS.items() if pooling.get(old)]
        return tuple(found) or ("mean",)
    names = {new: name for name, (_, new) in _POOLINGS.items()}
    listed = [modes] if isinstance(modes, str) else list(modes)
    unknown = [mode for mode in listed if mode not in names]
    if not listed or unknown:
        said = repr(unknown[0]) if unknown else "nothing"
        raise ConfigError(f"{SETTING}: {path} pools by {said}, which is not known here; set pooling.")
    return tuple(names[mode] for mode in listed)


def _prefixes(config: dict[str, Any]) -> tuple[str, str]:
    """For queries and passages, each under its own name; else the default prompt, if it is for both."""
    prompts = {name: text for name, text in (config.get("prompts") or {}).items() if isinstance(text, str)}
    default = config.get("default_prompt_name")
    usual = prompts.get(default, "") if default not in ("query", *_PASSAGE_PROMPTS) else ""
    passage = next((prompts[name] for name in _PASSAGE_PROMPTS if name in prompts), usual)
    return prompts.get("query", usual), passage


def _max_tokens(path: Path, config: dict[str, Any], sentence: dict[str, Any]) -> int:
    """The least of what the files say: some promise more than the network has positions for."""
    if sentence.get("max_seq_length"):
        said = number_in(sentence, ("max_seq_length",), path, SETTING)
        return min(said, positions_of(config, path, SETTING)) if has_last_position(config) else said
    positions = positions_of(config, path, SETTING)
    told = _read(path / "tokenizer_config.json", optional=True).get("model_max_length")
    return min(positions, told) if isinstance(told, int) and told > 0 else positions


def _truncation_side(path: Path) -> str:
    """Which end of a long text goes: by the tokenizer's settings, else by its file, as transformers does."""
    said = _read(path / "tokenizer_config.json", optional=True).get("truncation_side")
    if said is None:
        cut = _read(path / "tokenizer.json").get("truncation")
        said = cut.get("direction") if isinstance(cut, dict) else None
    return "left" if str(said).lower() == "left" else "right"


def _read(path: Path, *, optional: bool = False) -> dict[str, Any]:
    return {} if optional and not path.is_file() else read_object(path, SETTING)


# What planning needs to know of a model folder, for the providers that run it here.


# transformers loads them with their decoder, which needs a text of its own; that library takes the encoder.
_ENCODERS_OF_TWO = {"t5", "mt5", "umt5", "longt5", "switch_transformers"}
_CHANGES_NO_PASSAGE = {"query_prefix", "refuses_long"}


def facts_of(
    provider: str, recipe: Recipe, usage: Usage, libraries: Mapping[str, str], **more: Any
) -> DenseFacts:
    """Facts whose identity holds what is done with the model, and nothing of how fast or where."""
    identity = {
        "provider": provider,
        "model": recipe.content_hash,
        **{key: value for key, value in asdict(usage).items() if key not in _CHANGES_NO_PASSAGE},
        **({} if recipe.truncation_side == "right" else {"truncation_side": recipe.truncation_side}),
        **more,
    }
    return DenseFacts(
        provider=provider,
        model_id=recipe.model_id,
        dim=usage.dim,
        max_tokens=usage.max_tokens,
        tokenizer=recipe.path,
        normalized=usage.normalized,
        identity=identity,
        libraries=libraries,
        passage_prefix=usage.passage_prefix,
    )


def foreign_modules(recipe: Recipe, usage: Usage) -> list[str]:
    """What the folder asks for and only sentence-transformers can do."""
    found = list(recipe.other_modules)
    if recipe.model_type in _ENCODERS_OF_TWO:
        found.append("a decoder to be left out")
    if not recipe.pools_prompt and (usage.query_prefix or usage.passage_prefix):
        found.append("pooling without the prompt")
    return found


def require_own_modules(recipe: Recipe, usage: Usage) -> None:
    """Refuse a folder of which a part would be left out."""
    foreign = foreign_modules(recipe, usage)
    if foreign:
        raise ConfigError(
            f"embeddings.dense.model: {recipe.name} has {foreign[0]}, which this provider does not run; "
            'set embeddings.dense.provider = "sentence-transformers".'
        )
