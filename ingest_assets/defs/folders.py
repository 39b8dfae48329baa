"""Folders in the settings may be given relative to the home; workers elsewhere need to find them, too."""

from pathlib import Path

from ingest_assets.config import Settings
from ingest_assets.embedders.models import PACKAGED
from ingest_assets.model.embedding import DenseOptions, EmbeddingOptions
from ingest_assets.storage.layout import Layout


def with_folders_found(settings: Settings, layout: Layout) -> Settings:
    """The settings, with the models' folders as every worker finds them."""
    chunks, parsing = settings.chunks, settings.parsing
    tokenizer = _folder_or_name(chunks.tokenizer, layout.home)
    artifacts = _folder(parsing.artifacts_path, layout.home)
    found = {
        "embeddings": _embeddings(settings.embeddings, layout),
        "parsing": parsing.model_copy(update={"artifacts_path": artifacts}),
        "chunks": chunks.model_copy(update={"tokenizer": tokenizer}),
    }
    return settings.model_copy(update=found)


def _embeddings(given: EmbeddingOptions, layout: Layout) -> EmbeddingOptions:
    sparse = {"model": _folder_or_name(given.sparse.model, layout.home)}
    cache = {"path": _folder(given.cache.path or str(layout.cache), layout.home)}
    found = {
        "dense": _dense(given.dense, layout.home),
        "sparse": given.sparse.model_copy(update=sparse),
        "cache": given.cache.model_copy(update=cache),
    }
    return given.model_copy(update=found)


def _dense(given: DenseOptions, home: Path) -> DenseOptions:
    """What an endpoint calls its model is never a folder."""
    is_elsewhere = given.provider == "openai" or (given.provider == "auto" and given.remote.url)
    model = given.model if is_elsewhere else _folder_or_name(given.model, home)
    return given.model_copy(update={"model": model, "exports_path": _folder(given.exports_path, home)})


def _folder(given: str, home: Path) -> str:
    return str(home / Path(given).expanduser()) if given else ""


def _folder_or_name(given: str, home: Path) -> str:
    """What is no folder there is a name; the current folder of whoever runs a command is never looked at."""
    folder = home / Path(given).expanduser()
    return str(folder) if given and given not in PACKAGED and folder.is_dir() else given
