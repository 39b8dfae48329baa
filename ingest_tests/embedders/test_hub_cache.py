"""Models in the hub's cache: found by hub name, rejected if incomplete."""

import json
from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_fetch import files_to_fetch
from ingest_assets.embedders.model_files import find_folder, name_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DENSE, TOKENIZER = "embeddings.dense.model", "chunks.tokenizer"


def put(cache: Path, name: str, **files: str) -> Path:
    """Store a model in the hub client's layout; "__" in a file name stands for a dot."""
    repository = cache / f"models--{name.replace('/', '--')}"
    folder = repository / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    for file, content in files.items():
        (folder / file.replace("__", ".")).write_text(content)
    return folder


def refusal(name: str, setting: str = DENSE) -> str:
    """Return the error message for a name."""
    with pytest.raises(ConfigError) as raised:
        find_folder(name, setting)
    message = str(raised.value)
    assert len(message.splitlines()) == 1
    return message


@pytest.fixture(params=["HF_HUB_CACHE", "HF_HOME"])
def cache(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, set by either of the hub's variables."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(request.param, str(tmp_path))
    return tmp_path if request.param == "HF_HUB_CACHE" else tmp_path / "hub"


def test_a_hub_name_is_found_in_the_cache_and_keeps_its_name(cache: Path):
    """A vector's model is named by its hub name, not by a commit."""
    folder = put(cache, "bees/tiny", model__safetensors="x", tokenizer__json="{}")

    assert find_folder("bees/tiny", DENSE) == folder
    assert find_folder("bees/tiny", TOKENIZER) == folder
    assert (name_of("bees/tiny", folder), name_of(str(cache), cache)) == ("bees/tiny", cache.name)


def test_the_error_for_a_model_not_in_the_cache_says_how_to_fetch_it(cache: Path):
    """With the name of its setting."""
    assert refusal("bees/tiny").endswith(". Run `ingest models pull dense` to fetch it.")
    assert refusal("bees/tiny", TOKENIZER).endswith(". Run `ingest models pull tokenizer` to fetch it.")


@pytest.mark.parametrize("name", ["~/bees/tiny", "/bees/tiny", "models/bees/tiny", "../tiny", "a--b"])
def test_the_error_for_an_invalid_hub_name_does_not_suggest_a_download(name: str, cache: Path):
    """It is most likely a missing folder."""
    assert "ingest models pull" not in refusal(name)


def test_an_incomplete_model_is_rejected(cache: Path):
    """After an interrupted download, or one of the tokenizer only."""
    parts = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    put(cache, "bees/bare", config__json="{}", tokenizer__json="{}")
    half = put(cache, "bees/half", model__safetensors__index__json=json.dumps(parts))
    (half / "model-00001-of-00002.safetensors").write_text("x")

    assert "without weights. Run `ingest models pull dense`." in refusal("bees/bare")
    assert "without model-00002-of-00002.safetensors. Run" in refusal("bees/half")
    assert "without tokenizer.json. Run" in refusal("bees/half", TOKENIZER)
    assert find_folder("bees/bare", TOKENIZER).name == COMMIT


def test_only_files_that_are_loaded_are_fetched():
    """Small files first, the network's weights last."""
    small = ["1_Pooling/config.json", "2_Dense/config.json", "config.json", "modules.json", "vocab.txt"]
    other = ["onnx/config.json", "onnx/model.onnx", "rust_model.ot", "model.onnx", "flax_model.msgpack"]
    twice = ["pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "model.fp16.safetensors"]
    files = [*small, *other, *twice, "model.safetensors", "2_Dense/pytorch_model.bin", ".gitattributes"]

    parts = files_to_fetch(files, with_weights=True)
    old = files_to_fetch(["config.json", *twice], with_weights=True)

    assert [sorted(group) for group in parts] == [small, ["2_Dense/pytorch_model.bin"], ["model.safetensors"]]
    assert old == [["config.json", "pytorch_model.bin.index.json"], ["pytorch_model.bin"]]
    assert files_to_fetch(files, with_weights=False) == parts[:1]
