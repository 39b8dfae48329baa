"""Which provider `auto` means, decided without loading a library."""

from ingest_assets.model.embedding import DenseOptions


def choose_provider(options: DenseOptions) -> str:
    """A name of the registry."""
    return "local"
