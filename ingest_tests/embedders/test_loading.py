"""Models with missing weights are rejected: the library would fill them with random numbers."""

from pathlib import Path

import pytest

from ingest_assets.embedders.errors import ModelUnusable
from ingest_assets.embedders.providers import close_dense, open_dense
from ingest_assets.embedders.sparse import open_sparse
from ingest_assets.settings.embeddings import DenseOptions, SparseOptions
from ingest_tests.embedders.tiny_models import make_model
from ingest_tests.embedders.tiny_splade import write_model

# An export to ONNX takes several seconds.
_EACH = ["local", pytest.param("onnx", marks=pytest.mark.slow), "sentence-transformers"]


def _without(folder: str | Path, part: str) -> str:
    """Copy a folder, without the weights whose name contains this part."""
    from safetensors.torch import load_file, save_file

    file = Path(folder) / "model.safetensors"
    remaining = {name: tensor for name, tensor in load_file(file).items() if part not in name}
    save_file(remaining, file, metadata={"format": "pt"})
    return str(folder)


@pytest.mark.parametrize("provider", _EACH)
def test_a_model_without_a_layer_is_rejected_in_one_line(tmp_path: Path, provider: str) -> None:
    """Its vectors would differ in every process under the same name."""
    model = _without(make_model(tmp_path / "model"), "layer.1.")
    options = DenseOptions(provider=provider, model=model, exports_path=str(tmp_path / "exports"))

    with pytest.raises(
        ModelUnusable,
        match=r"^embeddings.dense.model: .* lack encoder.layer.1.* and \d+ more, which BertModel",
    ) as raised:
        open_dense(options)

    assert len(str(raised.value).splitlines()) == 1
    close_dense()


@pytest.mark.parametrize("provider", _EACH)
def test_a_model_without_a_pooler_is_complete(tmp_path: Path, provider: str) -> None:
    """Many are saved without: vectors are pooled from tokens."""
    model = _without(make_model(tmp_path / "model"), "pooler")
    options = DenseOptions(provider=provider, model=model, exports_path=str(tmp_path / "exports"))

    assert open_dense(options).embed(["the hive"]).shape == (1, 32)
    close_dense()


def test_a_sparse_model_without_its_head_is_rejected_in_one_line(tmp_path: Path) -> None:
    """The config of a plain encoder can name a masked-language model."""
    model = _without(write_model(tmp_path / "model"), "cls.predictions")

    with pytest.raises(ModelUnusable, match=r"^embeddings.sparse.model: .* lack cls.predictions") as raised:
        open_sparse(SparseOptions(model=model))

    assert len(str(raised.value).splitlines()) == 1
