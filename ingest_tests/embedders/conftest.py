"""One warm embedder for the whole room: loading the weights costs more than all the tests."""

import pytest

from ingest_assets.embedders.dense import TransformersEmbedder, open_embedder
from ingest_assets.model.embedding import DenseOptions


@pytest.fixture(scope="session")
def embedder() -> TransformersEmbedder:
    """The packaged model, as a worker holds it."""
    return open_embedder(DenseOptions())
