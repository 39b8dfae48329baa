"""The model hub: where its cache is, and in which words a model could not be fetched from it."""

import os
from collections.abc import Mapping
from pathlib import Path

from ingest_assets.model.errors import IngestError

ANSWER_SECONDS = 10.0


class ModelNotFetched(IngestError):
    """A model could not be fetched whole."""


class HubUnreachable(ModelNotFetched):
    """Nor would any other model of the hub be fetched now."""


def hub_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """As the hub's client finds it."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environ.get(name):
            return Path(environ[name]).expanduser().absolute()
    general = environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = environ.get("HF_HOME") or f"{general}/huggingface"
    return Path(home).expanduser().absolute() / "hub"


def hub_name(environ: Mapping[str, str] = os.environ) -> str:
    """Where models come from."""
    given = environ.get("HF_ENDPOINT", "").rstrip("/")
    return f"the model hub at {given}" if given else "the Hugging Face model hub"


def is_unreachable(error: Exception) -> bool:
    """True when the hub gave no answer at all."""
    import httpx
    from huggingface_hub.errors import OfflineModeIsEnabled

    has_answer = getattr(error, "response", None) is not None
    return isinstance(error, OfflineModeIsEnabled) or (isinstance(error, httpx.HTTPError) and not has_answer)


def reason_of(error: Exception) -> str:
    """Why, in words; never the hub's own, which may hold a token's address."""
    import httpx
    from huggingface_hub.errors import OfflineModeIsEnabled

    response = getattr(error, "response", None)
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set, and forbids it"
    if response is not None:
        return f"it answered with status {response.status_code}"
    if isinstance(error, httpx.HTTPError):
        return f"it cannot be reached ({type(error).__name__})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
