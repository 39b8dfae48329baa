"""Tokenizers on disk: where their files are, what identifies them, and how many tokens they add to a text."""

import functools
import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest_assets.embedders.foreign import told
from ingest_assets.embedders.loading import load_words
from ingest_assets.embedders.models import PACKAGED, find_folder, name_of, while_unchanged
from ingest_assets.embedders.own_code import require_no_tokenizer_code
from ingest_assets.model.errors import ConfigError

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
    require_no_tokenizer_code(path, _SETTING)
    return TokenizerFiles(
        name=name if name in PACKAGED else name_of(path),
        path=str(path),
        special_tokens=special_tokens(_read(path / "tokenizer.json").get("post_processor")),
        content_hash=_hash(path),
    )


def load_tokenizer(name: str) -> Any:
    """A tokenizer of transformers, offline."""
    path = tokenizer_files(name).path
    with _told(path):
        return load_words(path)


def count_tokens(name: str, text: str) -> int:
    """How many tokens a text has by itself, without those that are put around it."""
    return _counted(tokenizer_files(name), text)


@functools.lru_cache(maxsize=16)
def _counted(files: TokenizerFiles, text: str) -> int:
    from tokenizers import Tokenizer

    with _told(files.path):
        tokenizer = Tokenizer.from_file(str(Path(files.path) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


def _told(path: str) -> AbstractContextManager[None]:
    """The libraries raise anything, a bare `Exception` too."""
    return told(f"{_SETTING}: the tokenizer in {path} cannot be loaded", ConfigError, "give another folder")


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


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"{_SETTING}: {file.parent} has no {file.name}; give a folder with a tokenizer's files."
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{_SETTING}: {file} cannot be used ({error}).") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{_SETTING}: {file} cannot be used (not a JSON object).")
    return content


def _hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in _FILES:
        if (folder / name).is_file():
            content = (folder / name).read_bytes()
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()
