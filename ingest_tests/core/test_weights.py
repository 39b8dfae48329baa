"""Hashes of large model files from samples, and detection of truncated files."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from ingest_assets.core.model_hub import hash_model_file
from ingest_tests.weights import weights

SHAPE = (1024, 2048)  # 8 MiB; three of them exceed the limit for hashing the whole file
NAMES = ("embeddings", "attention", "pooler")


def identity(path: Path) -> str:
    """Return the current hash of a file."""
    status = path.stat()
    return hash_model_file(path, status.st_size, status.st_mtime_ns)


def trained(path: Path, *names: str) -> Path:
    """Write weights in which only these tensors differ."""
    save_file({name: np.full(SHAPE, name in names, dtype=np.float32) for name in NAMES}, path)
    return path


def test_a_change_in_any_tensor_changes_the_hash(tmp_path):
    """Tensors at both ends of a file (frozen embeddings, an unused pooler) often do not change."""
    files = [trained(tmp_path / f"{name}.safetensors", name) for name in ("none", *NAMES)]

    assert len({identity(file) for file in files}) == len(files)


def test_equal_weights_have_the_same_hash(tmp_path):
    """In any file."""
    first, copy = (trained(tmp_path / f"{name}.safetensors", "attention") for name in "ab")

    assert identity(first) == identity(copy)


def test_a_large_vocabulary_is_hashed_completely(tmp_path):
    """Multilingual ones have 17 MB, and a single word can differ."""
    words = ["word"] * 2_400_000
    files = [tmp_path / f"{name}.txt" for name in "ab"]
    files[0].write_text("\n".join(words))
    words[1_200_000] = "work"
    files[1].write_text("\n".join(words))

    assert identity(files[0]) != identity(files[1])


@pytest.mark.parametrize("offsets", ["[-5, 3]", "[9, 3]", "[0]", '"ab"', "null"])
def test_invalid_tensor_offsets_are_rejected(tmp_path, offsets):
    """They would point outside the file."""
    file = tmp_path / "model.safetensors"
    header = f'{{"a": {{"dtype": "F32", "shape": [1], "data_offsets": {offsets}}}}}'.encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(3))

    with pytest.raises(ValueError, match="its header is damaged"):
        identity(file)


def test_truncated_weights_are_rejected(tmp_path):
    """A download was interrupted."""
    file = tmp_path / "model.safetensors"
    file.write_bytes(weights(bytes(100))[:-1])

    with pytest.raises(ValueError, match=r"it has \d+ of \d+ bytes"):
        identity(file)
