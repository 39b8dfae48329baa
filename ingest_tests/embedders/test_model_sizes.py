"""The size of a model's ONNX export, computed from its files."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from ingest_assets.embedders import onnx
from ingest_assets.embedders.model_files import float32_bytes
from ingest_assets.embedders.providers import choose_provider
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.embedders.tiny_models import make_model


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_weights_are_counted_in_float32(tmp_path: Path, kind: type) -> None:
    """A file in half precision counts double; a second file format is not counted."""
    save_file({"a": np.zeros((3, 5), kind), "b": np.zeros(7, kind)}, tmp_path / "model-1.safetensors")
    save_file({"c": np.zeros((2, 2), kind)}, tmp_path / "model-2.safetensors")
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(1000))

    assert float32_bytes(tmp_path, {}) == 4 * (15 + 7 + 4)


@pytest.mark.parametrize(
    ("config", "size"), [({}, 1000), ({"torch_dtype": "float16"}, 2000), ({"dtype": "bfloat16"}, 2000)]
)
def test_the_size_of_pickled_weights_follows_their_dtype(
    tmp_path: Path, config: dict[str, str], size: int
) -> None:
    """They do not contain a count; the dtype comes from the model's config."""
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(1000))

    assert float32_bytes(tmp_path, config) == size


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, (2).to_bytes(8, "little") + b"[]"])
def test_a_file_with_an_invalid_header_counts_by_its_bytes(tmp_path: Path, content: bytes) -> None:
    """Loading it will report what is wrong."""
    (tmp_path / "model.safetensors").write_bytes(content)

    assert float32_bytes(tmp_path, {}) == len(content) // 4 * 4


def test_a_model_too_large_for_onnx_runs_on_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without trying an export that takes minutes and fails."""
    options = DenseOptions(model=make_model(tmp_path / "model"), device="cpu")
    before = choose_provider(options)
    size = float32_bytes(tmp_path / "model", {})

    monkeypatch.setattr(onnx, "MAX_WEIGHTS_BYTES", size - 1)

    assert (before, choose_provider(options)) == ("onnx", "local")
