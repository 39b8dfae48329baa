"""Fetches the models in the settings from the model hub."""

import logging
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from ingest_assets.core.model_hub import (
    ANSWER_SECONDS,
    HubUnreachable,
    ModelNotFetched,
    describe_hub_error,
    hub_cache,
    hub_name,
    is_hub_unreachable,
)
from ingest_assets.embedders.model_files import PULL_NAMES, is_hub_name

_PART = r"(-\d{5}-of-\d{5})?"
# Only the first of these formats that a folder has is fetched.
_WEIGHTS = (re.compile(rf"^model{_PART}\.safetensors$"), re.compile(rf"^pytorch_model{_PART}\.bin$"))
_LISTINGS = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_SMALL = {".json", ".txt", ".model"}
# Folders of sentence-transformers modules. Other folders contain the model in other formats.
_MODULE = re.compile(r"^([a-z]+_)?\d+_\w+$")


def files_to_fetch(files: Iterable[str], *, with_weights: bool) -> list[list[str]]:
    """Return the files to fetch, in this order: small files, the modules' weights, the model's weights.

    Thus a folder with weights is complete even if fetching was interrupted.
    """
    folders: dict[str, list[str]] = {}
    for path in map(PurePosixPath, sorted(files)):
        folder = "" if len(path.parts) == 1 else str(path.parent)
        if not folder or _MODULE.match(folder):
            folders.setdefault(folder, []).append(path.name)
    small, weights = [], {}
    for folder, names in folders.items():
        form = next((n for n, form in enumerate(_WEIGHTS) if any(form.match(name) for name in names)), 0)
        other_listing = _LISTINGS[1 - form]
        chosen = [name for name in names if PurePosixPath(name).suffix in _SMALL and name != other_listing]
        small += [str(PurePosixPath(folder, name)) for name in chosen]
        weights[folder] = [str(PurePosixPath(folder, name)) for name in names if _WEIGHTS[form].match(name)]
    model_weights = weights.pop("", [])
    groups = [small, [file for files in weights.values() for file in files], model_weights]
    return [group for group in (groups if with_weights else groups[:1]) if group]


def fetch(name: str, setting: str, *, with_bar: bool = False) -> None:
    """Download a model's files into the hub's cache.

    The cache's reference is updated last: until the download is complete, the older files are used.
    """
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    if not is_hub_name(name):
        raise ModelNotFetched(f"{setting}: {name!r} is not a hub name. Set a hub name or a folder.")
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    if not with_bar:
        disable_progress_bars()
    kind = PULL_NAMES[setting]
    try:
        # First, because `snapshot_download` uses cached files if the hub does not respond.
        info = HfApi().model_info(name, revision="main", timeout=ANSWER_SECONDS)
        files = [file.rfilename for file in info.siblings or ()]
        groups = files_to_fetch(files, with_weights=kind != "tokenizer")
        _require_complete(groups, kind, name)
        for group in groups:
            snapshot_download(name, revision=info.sha, allow_patterns=group, cache_dir=hub_cache())
        all_files = [file for group in groups for file in group]
        snapshot_download(name, revision="main", allow_patterns=all_files, cache_dir=hub_cache())
    except (OSError, ValueError, httpx.HTTPError) as error:
        failure = HubUnreachable if is_hub_unreachable(error) else ModelNotFetched
        raise failure(
            f"Cannot download {kind} ({name}) from {hub_name()}: {describe_hub_error(error)}. "
            f"{_advice(error, setting)}"
        ) from None


def _require_complete(groups: list[list[str]], kind: str, name: str) -> None:
    files = [file for group in groups for file in group]
    if kind == "tokenizer":
        is_complete, needed = "tokenizer.json" in files, "tokenizer.json"
    else:
        is_complete = any(file.endswith((".safetensors", ".bin")) for file in files)
        needed = "weights in a supported format (model.safetensors, pytorch_model.bin)"
    if not is_complete:
        raise ModelNotFetched(
            f"{kind} ({name}): {hub_name()} has the model, but not {needed}. Use another model."
        )


def _advice(error: Exception, setting: str) -> str:
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if isinstance(error, GatedRepoError):
        return "It is gated: request access on its page, and set HF_TOKEN to your token."
    if isinstance(error, RepositoryNotFoundError):
        return f"Correct {setting}, or set HF_TOKEN if the model is private."
    return (
        f"Run `ingest models pull {PULL_NAMES[setting]}` on a machine with network access, copy the model's "
        f"folder here and set {setting} to it."
    )
