"""A model's file is told from another by a few looks at it, and from one that is cut short."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from ingest_assets.core.model_hub import hash_whole
from ingest_tests.weights import weights

SHAPE = (1024, 2048)  # 8 MiB; three of them are too much to read whole
NAMES = ("embeddings", "attention", "pooler")


def identity(path: Path) -> str:
    """The hash of a file as it is now."""
    status = path.stat()
    return hash_whole(path, status.st_size, status.st_mtime_ns)


def trained(path: Path, *names: str) -> Path:
    """Weights of which only those tensors are not what they were."""
    save_file({name: np.full(SHAPE, name in names, dtype=np.float32) for name in NAMES}, path)
    return path


def test_training_any_one_tensor_makes_another_model(tmp_path):
    """Frozen embeddings and a pooler that nobody uses lie at the ends of a file, and never change."""
    files = [trained(tmp_path / f"{name}.safetensors", name) for name in ("none", *NAMES)]

    assert len({identity(file) for file in files}) == len(files)


def test_equal_weights_are_one_model(tmp_path):
    """Wherever they lie."""
    first, copy = (trained(tmp_path / f"{name}.safetensors", "attention") for name in "ab")

    assert identity(first) == identity(copy)


def test_a_big_vocabulary_is_read_to_its_end(tmp_path):
    """Those of many languages have 17 MB, and one word may be another."""
    words = ["word"] * 2_400_000
    files = [tmp_path / f"{name}.txt" for name in "ab"]
    files[0].write_text("\n".join(words))
    words[1_200_000] = "work"
    files[1].write_text("\n".join(words))

    assert identity(files[0]) != identity(files[1])


@pytest.mark.parametrize("offsets", ["[-5, 3]", "[9, 3]", "[0]", '"ab"', "null"])
def test_tensors_that_lie_nowhere_are_damage(tmp_path, offsets):
    """Nobody looks before the beginning of a file."""
    file = tmp_path / "model.safetensors"
    header = f'{{"a": {{"dtype": "F32", "shape": [1], "data_offsets": {offsets}}}}}'.encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(3))

    with pytest.raises(ValueError, match="its header is damaged"):
        identity(file)


def test_weights_that_are_cut_short_are_refused(tmp_path):
    """A download that broke off."""
    file = tmp_path / "model.safetensors"
    file.write_bytes(weights(bytes(100))[:-1])

    with pytest.raises(ValueError, match=r"it has \d+ of \d+ bytes"):
        identity(file)
