"""Fetching Docling's models from the model hub, where there is a network."""

import logging

from ingest_assets.model.hub import ANSWER_SECONDS, ModelNotFetched, hub_name, reason_of
from ingest_assets.parsing.engines.artifacts import DoclingModel, FoundModel, Place


def pull(model: DoclingModel, place: Place, *, with_bar: bool = False) -> FoundModel:
    """Fetch the files of a model that Docling loads, and look whether they are whole.

    A download that breaks off leaves no file under its own name; the next one goes on from there.
    """
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    if not with_bar:
        disable_progress_bars()
    try:
        # Asked first: without an answer, what follows would be content with whatever is here.
        HfApi().model_info(model.repo, revision=model.revision, timeout=ANSWER_SECONDS)
        snapshot_download(
            model.repo,
            revision=model.revision,
            allow_patterns=list(model.files),
            cache_dir=place.path if place.is_cache else None,
            local_dir=None if place.is_cache else place.path / model.folder,
        )
    except (OSError, ValueError, httpx.HTTPError) as error:
        raise ModelNotFetched(_failure(model, reason_of(error))) from None
    found = place.find(model)
    if not found.is_whole:
        raise ModelNotFetched(_failure(model, f"what it gave is not whole ({found.fault})"))
    return found


def _failure(model: DoclingModel, reason: str) -> str:
    return (
        f"{model.name} ({model.repo}) could not be fetched from {hub_name()}: {reason}; where there is a "
        "network, set parsing.artifacts_path to a folder, run `ingest models pull`, copy the folder here and "
        "set parsing.artifacts_path to it."
    )
