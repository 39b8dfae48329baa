"""Model folders whose JSON files have unexpected content: rejected in one line with the folder."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest_assets.core.errors import ConfigError, IngestError
from ingest_assets.embedders.model_files import count_tokens, load_tokenizer, tokenizer_files
from ingest_assets.embedders.providers import close_dense, describe_dense, open_dense
from ingest_assets.embedders.sparse import read_sparse_model
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.embedders.tiny_splade import write_model


def _with(folder: Path, file: str, content: str) -> str:
    (folder / file).write_text(content)
    return str(folder)


def _changed(folder: Path, file: str, **values: Any) -> str:
    content = json.loads((folder / file).read_text())
    return _with(folder, file, json.dumps({**content, **values}))


def _refusal(act: Callable[[], object], folder: str) -> str:
    with pytest.raises(IngestError) as raised:
        act()
    (line,) = str(raised.value).splitlines()
    assert folder in line
    return line


@pytest.mark.parametrize("provider", ["auto", "local", "sentence-transformers"])
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "[" * 100_000),
        ("modules.json", '[{"path": 7, "type": "sentence_transformers.models.Transformer"}]'),
        ("1_Pooling/config.json", '{"pooling_mode": 7}'),
        ("1_Pooling/config.json", '{"pooling_mode": []}'),
        ("1_Pooling/config.json", '{"pooling_mode": [[]]}'),
        ("config_sentence_transformers.json", '{"prompts": ["a"]}'),
        ("config_sentence_transformers.json", '{"prompts": "a"}'),
        ("config_sentence_transformers.json", '{"prompts": {"a": "b"}, "default_prompt_name": ["a"]}'),
    ],
)
def test_a_file_with_unexpected_content_is_rejected_when_planning(
    tiny: str, tmp_path: Path, provider: str, file: str, content: str
):
    """A traceback would not name the file."""
    model = _with(Path(shutil.copytree(tiny, tmp_path / "model")), file, content)

    line = _refusal(lambda: describe_dense(DenseOptions(provider=provider, model=model)), model)

    assert line.startswith("embeddings.dense.model: ")


def test_a_sparse_model_with_unexpected_content_is_rejected(tmp_path: Path):
    """As for dense models."""
    model = _changed(write_model(tmp_path / "model"), "config.json", architectures=7)

    assert _refusal(lambda: read_sparse_model(model), model).startswith("embeddings.sparse.model: ")


@pytest.mark.parametrize(
    "processor",
    ["x", {"type": "Sequence"}, {"type": "TemplateProcessing"}, {"type": "Sequence", "processors": 7}],
)
def test_a_tokenizer_with_unknown_special_tokens_is_rejected(tiny: str, tmp_path: Path, processor: Any):
    """Their number must be known before a text is cut."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    model = _changed(folder, "tokenizer.json", post_processor=processor)

    assert _refusal(lambda: tokenizer_files(model), model).startswith("chunks.tokenizer: ")


@pytest.mark.parametrize("act", [load_tokenizer, lambda model: count_tokens(model, "the hive")])
def test_a_tokenizer_that_cannot_be_loaded_is_rejected(
    tiny: str, tmp_path: Path, act: Callable[[str], object]
):
    """The library raises a bare `Exception`."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    model = _changed(folder, "tokenizer.json", model={"type": "Nope"})

    with pytest.raises(ConfigError):
        act(model)
    assert _refusal(lambda: act(model), model).startswith("chunks.tokenizer: ")


def test_weights_with_the_wrong_shape_are_named(tiny: str, tmp_path: Path):
    """The library only refers to a printed table."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    model = _changed(folder, "config.json", max_position_embeddings=8)

    line = _refusal(lambda: open_dense(DenseOptions(provider="local", model=model, device="cpu")), model)

    assert "position_embeddings.weight" in line
    assert "66" in line
    close_dense()
