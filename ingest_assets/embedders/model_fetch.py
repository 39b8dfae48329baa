"""Fetching the models that the settings name from the model hub, where there is a network."""

import logging
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from ingest_assets.core.model_hub import (
    ANSWER_SECONDS,
    HubUnreachable,
    ModelNotFetched,
    hub_cache,
    hub_name,
    is_unreachable,
    reason_of,
)
from ingest_assets.embedders.model_files import PULLED_AS, is_hub_name

_PART = r"(-\d{5}-of-\d{5})?"
# Of weights that are there in several forms the first is fetched.
_WEIGHTS = (re.compile(rf"^model{_PART}\.safetensors$"), re.compile(rf"^pytorch_model{_PART}\.bin$"))
_LISTINGS = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_SMALL = {".json", ".txt", ".model"}
# As sentence-transformers names the folders of its modules; others hold the model in other forms.
_MODULE = re.compile(r"^([a-z]+_)?\d+_\w+$")


def wanted_files(files: Iterable[str], *, with_weights: bool) -> list[list[str]]:
    """What is loaded of a repository, in the order of fetching: small files, the weights of modules, weights.

    Whatever has weights is whole, then, also when fetching broke off.
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
    own = weights.pop("", [])
    groups = [small, [file for found in weights.values() for file in found], own]
    return [group for group in (groups if with_weights else groups[:1]) if group]


def fetch(name: str, setting: str, *, with_bar: bool = False) -> None:
    """Bring a hub name's files into the hub's cache.

    Its place in the cache gets the name last: until a download is whole, what was there before is used.
    """
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    if not is_hub_name(name):
        raise ModelNotFetched(f"{setting}: {name!r} is no name of a model on a hub; give one, or a folder.")
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    if not with_bar:
        disable_progress_bars()
    kind = PULLED_AS[setting]
    try:
        # Asked first: without an answer, what follows would be content with whatever is here.
        about = HfApi().model_info(name, revision="main", timeout=ANSWER_SECONDS)
        files = [file.rfilename for file in about.siblings or ()]
        groups = wanted_files(files, with_weights=kind != "tokenizer")
        _require(groups, kind, name)
        for group in groups:
            snapshot_download(name, revision=about.sha, allow_patterns=group, cache_dir=hub_cache())
        together = [file for group in groups for file in group]
        snapshot_download(name, revision="main", allow_patterns=together, cache_dir=hub_cache())
    except (OSError, ValueError, httpx.HTTPError) as error:
        failure = HubUnreachable if is_unreachable(error) else ModelNotFetched
        raise failure(
            f"{kind} ({name}) could not be fetched from {hub_name()}: {reason_of(error)}; "
            f"{_advice(error, setting)}."
        ) from None


def _require(groups: list[list[str]], kind: str, name: str) -> None:
    files = [file for group in groups for file in group]
    if kind == "tokenizer":
        is_whole, needed = "tokenizer.json" in files, "tokenizer.json"
    else:
        is_whole = any(file.endswith((".safetensors", ".bin")) for file in files)
        needed = "weights that are loaded here (model.safetensors, pytorch_model.bin)"
    if not is_whole:
        raise ModelNotFetched(f"{kind} ({name}): {hub_name()} has it without {needed}; name another model.")


def _advice(error: Exception, setting: str) -> str:
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if isinstance(error, GatedRepoError):
        return "it is gated: ask for access on its page, and set HF_TOKEN to a token of yours"
    if isinstance(error, RepositoryNotFoundError):
        return f"correct {setting}, or set HF_TOKEN where the model is private"
    return (
        f"where there is a network, run `ingest models pull {PULLED_AS[setting]}`, copy the model's folder "
        f"here and set {setting} to it"
    )
