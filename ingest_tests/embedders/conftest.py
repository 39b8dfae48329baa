"""One warm embedder for the whole room: loading the weights costs more than all the tests."""

import pytest

from ingest_assets.embedders.local import TorchEmbedder
from ingest_assets.embedders.registry import open_dense
from ingest_assets.model.embedding import DenseOptions


@pytest.fixture(scope="session")
def embedder() -> TorchEmbedder:
    """The packaged model, as a worker holds it."""
    provider = open_dense(DenseOptions(provider="local"))
    assert isinstance(provider, TorchEmbedder)
    return provider
