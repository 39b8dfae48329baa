"""Where a model runs: what the settings want, and what is here."""

from ingest_assets.model.embedding import Device
from ingest_assets.model.errors import ConfigError


def device_for(wanted: Device, setting: str) -> str:
    """The one wanted, or the best there is; `ConfigError` naming the setting when it is not here."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(name for name, is_there in there.items() if is_there)
    if not there[wanted]:
        raise ConfigError(f'{setting}: there is no {wanted} here; set it to "auto" or "cpu".')
    return wanted


def has_cuda() -> bool:
    """True when models run on a GPU here."""
    import torch

    return bool(torch.cuda.is_available())
