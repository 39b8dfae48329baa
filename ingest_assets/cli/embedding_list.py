"""The models that the settings name for vectors and for counting tokens, and whether they are here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest_assets.defs.home import Home
from ingest_assets.embedders.models import PACKAGED, PULLED_AS, find_folder, is_hub_name
from ingest_assets.embedders.registry import describe_dense
from ingest_assets.embedders.sparse import sparse_model
from ingest_assets.embedders.tokenizer_files import tokenizer_files
from ingest_assets.model.embedding import DenseOptions, SparseOptions
from ingest_assets.model.errors import ConfigError

OWN_PROVIDERS = ("auto", "local", "onnx", "onnx-int8", "sentence-transformers")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that a setting names; one that runs elsewhere has no files here."""

    setting: str
    title: str
    model: str
    provider: str | None
    facts: Callable[[], dict[str, Any]]
    runs_here: bool = True

    @property
    def name(self) -> str:
        return PULLED_AS[self.setting]

    @property
    def is_on_hub(self) -> bool:
        """True when it can be fetched."""
        return self.runs_here and is_hub_name(self.model)


def named_models(home: Home) -> dict[str, NamedModel]:
    """By the name under which they are pulled; nothing is looked up yet, so nothing is refused."""
    settings = home.settings_found
    sparse, tokenizer = settings.embeddings.sparse, settings.chunks.tokenizer
    found = [_dense(settings.embeddings.dense)]
    if sparse.model:
        found.append(
            NamedModel(
                "embeddings.sparse.model",
                "sparse vectors",
                sparse.model,
                "local",
                lambda: _sparse_facts(sparse.model, sparse),
            )
        )
    if tokenizer:
        found.append(
            NamedModel(
                "chunks.tokenizer", "counting tokens", tokenizer, None, lambda: _tokenizer_facts(tokenizer)
            )
        )
    return {each.name: each for each in found}


def embedding_object(named: NamedModel) -> dict[str, Any]:
    """One of them as it was found, with what is wrong, and what to do about it, in words."""
    found: dict[str, Any] = {
        "name": named.name,
        "setting": named.setting,
        "for": named.title,
        "model": named.model,
        "where": None if named.runs_here else "elsewhere",
        "is_present": not named.runs_here,
        "fault": None,
        "path": None,
        "size_bytes": 0,
        "revision": None,
        "provider": named.provider,
        "model_id": None,
        "dim": None,
        "max_tokens": None,
    }
    try:
        found |= _place(named) if named.runs_here else {}
        found |= named.facts()
    except ConfigError as error:
        found["fault"] = str(error)
    return found


def embedding_line(found: dict[str, Any]) -> str:
    """The same for a person."""
    head = f"{found['name']:<12} {found['for']}: "
    if found["fault"]:
        return f"{head}{'cannot be used' if found['is_present'] else 'not here'} ({found['fault']})"
    told = [found["model_id"] or found["model"]]
    if found["provider"]:
        told[0] += f" by {found['provider']}"
    told += [f"{found['dim']} dimensions"] if found["dim"] else []
    told += [f"reads {found['max_tokens']} tokens"] if found["max_tokens"] else []
    if found["path"]:
        told.append(f"{found['where']}, {found['size_bytes'] / 2**20:.1f} MiB, in {found['path']}")
    return head + ", ".join(told)


def _dense(options: DenseOptions) -> NamedModel:
    is_remote = options.provider == "auto" and bool(options.remote.url)
    return NamedModel(
        "embeddings.dense.model",
        "dense vectors",
        options.model,
        None if options.provider == "auto" else options.provider,
        lambda: _dense_facts(options),
        runs_here=options.provider in OWN_PROVIDERS and not is_remote,
    )


def _place(named: NamedModel) -> dict[str, Any]:
    folder = find_folder(named.model, named.setting)
    is_cached = named.is_on_hub
    where = "packaged" if named.model in PACKAGED else "hub cache" if is_cached else "folder"
    return {
        "where": where,
        "is_present": True,
        "path": str(folder),
        "size_bytes": sum(file.stat().st_size for file in _files(folder)),
        "revision": folder.name if is_cached else None,
    }


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _dense_facts(options: DenseOptions) -> dict[str, Any]:
    facts = describe_dense(options)
    return {
        "provider": facts.provider,
        "model_id": facts.model_id,
        "dim": facts.dim,
        "max_tokens": facts.max_tokens,
    }


def _sparse_facts(name: str, options: SparseOptions) -> dict[str, Any]:
    model = sparse_model(name)
    limit = min(options.max_tokens or model.max_tokens, model.max_tokens)
    return {"model_id": model.model_id, "dim": model.dim, "max_tokens": limit}


def _tokenizer_facts(name: str) -> dict[str, Any]:
    files = tokenizer_files(name)
    return {"model_id": f"{files.name}@{files.content_hash[:12]}"}
