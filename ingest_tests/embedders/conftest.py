"""One warm embedder for the whole room: loading the weights takes longer than all the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_assets.embedders.cache import VectorCache
from ingest_assets.embedders.model_layout import read_layout
from ingest_assets.embedders.onnx import OnnxEmbedder
from ingest_assets.embedders.onnx_export import Export, export_of
from ingest_assets.embedders.providers import open_dense
from ingest_assets.embedders.torch import TorchEmbedder
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.embedders.cached_vectors import PLENTY
from ingest_tests.embedders.tiny_models import make_model, modules


@pytest.fixture(scope="session")
def embedder() -> TorchEmbedder:
    """The packaged model on torch, as a worker uses it."""
    provider = open_dense(DenseOptions(provider="local"))
    assert isinstance(provider, TorchEmbedder)
    return provider


@pytest.fixture(scope="session")
def onnx_embedder() -> OnnxEmbedder:
    """The packaged model with the default provider of a CPU."""
    provider = open_dense(DenseOptions(provider="onnx"))
    assert isinstance(provider, OnnxEmbedder)
    return provider


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small BERT with prompts, which pools by its first token and cuts at 16 tokens."""
    return make_model(
        tmp_path_factory.mktemp("models") / "tiny",
        modules=modules("Transformer", "Pooling", "Normalize"),
        sentence_bert_config={"max_seq_length": 16, "do_lower_case": False},
        config_sentence_transformers={"prompts": {"query": "swarm: ", "document": "hive: "}},
        **{"1_Pooling__config": {"word_embedding_dimension": 32, "pooling_mode_cls_token": True}},
    )


@pytest.fixture
def cache_path(tmp_path: Path) -> Path:
    """A path for a vector cache in a folder that does not exist yet."""
    return tmp_path / "cache" / "vectors.sqlite"


@pytest.fixture
def cache(cache_path: Path) -> Iterator[VectorCache]:
    """An open cache that is large enough for all tests."""
    opened = VectorCache(cache_path, PLENTY)
    yield opened
    opened.close()


def export_here(model: str, exports: Path) -> Export:
    """Export in this process, where torch is already loaded."""
    from ingest_assets.embedders.onnx_export import export

    layout = read_layout(model)
    created = export_of(layout, str(exports))
    created.folder.mkdir(parents=True)
    export(layout, created.folder)
    return created
