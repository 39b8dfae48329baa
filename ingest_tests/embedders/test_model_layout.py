"""How to use a model is read from its files, and equals sentence-transformers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_layout import read_layout, usage_of
from ingest_assets.embedders.providers import resolve_dense
from ingest_assets.embedders.torch import LocalFactory, SentenceTransformersFactory
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.embedders.tiny_models import make_model, modules
from ingest_tests.weights import weights

TEXTS = ["the bridge was found", "a swarm in may", "rust , rust", "x b c d e f g h i x b c d e f g"]


def test_pooling_prompts_limit_and_scaling_come_from_the_files(tiny: str) -> None:
    """Settings override them."""
    layout = read_layout(tiny)
    base = usage_of(layout, DenseOptions(normalize=False))
    custom = usage_of(layout, DenseOptions(pooling="max", max_tokens=9, dim=4, query_prefix=""))

    assert (base.pooling, base.max_tokens, base.dim, base.normalized) == (("cls",), 16, 32, True)
    assert (base.query_prefix, base.passage_prefix) == ("swarm: ", "hive: ")
    assert (custom.pooling, custom.max_tokens, custom.dim, custom.query_prefix) == (("max",), 9, 4, "")


@pytest.mark.parametrize(
    ("prompts", "default", "expected"),
    [
        ({"query": "q: ", "passage": "p: "}, None, ("q: ", "p: ")),
        ({"query": "q: "}, "query", ("q: ", "")),
        ({"any": "a: "}, "any", ("a: ", "a: ")),
        ({"any": "a: "}, None, ("", "")),
        ({"query": "q: ", "any": "a: "}, "any", ("q: ", "a: ")),
    ],
)
def test_prompts_are_taken_by_name_or_default(
    tiny: str, tmp_path: Path, prompts: dict[str, str], default: str | None, expected: tuple[str, str]
) -> None:
    """A prompt for queries is never put before passages."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    content = {"prompts": prompts, "default_prompt_name": default}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(content))

    layout = read_layout(str(folder))

    assert (layout.query_prefix, layout.passage_prefix) == expected


@pytest.mark.parametrize(
    "pooling",
    [
        {"pooling_mode_cls_token": True},
        {"pooling_mode_max_tokens": True},
        {"pooling_mode_mean_sqrt_len_tokens": True},
        {"pooling_mode_weightedmean_tokens": True},
        {"pooling_mode_lasttoken": True},
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode": "mean", "embedding_dimension": 32},
    ],
    ids=lambda pooling: "+".join(pooling),
)
def test_every_pooling_equals_sentence_transformers(
    tiny: str, tmp_path: Path, pooling: dict[str, object]
) -> None:
    """With prompts and limits, for passages and queries."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32} | pooling))
    (folder / "modules.json").write_text(json.dumps(modules("Transformer", "Pooling")))
    options = DenseOptions(model=str(folder), device="cpu")

    ours, library = LocalFactory().open(options), SentenceTransformersFactory().open(options)

    assert ours.dim == library.dim == 32 * len([mode for mode in pooling.values() if mode is True] or [1])
    for kind in ("passage", "query"):
        np.testing.assert_allclose(ours.embed(TEXTS, kind), library.embed(TEXTS, kind), atol=2e-5)


def test_a_folder_with_further_layers_needs_sentence_transformers(tiny: str, tmp_path: Path) -> None:
    """`auto` must not skip a layer; an explicit `local` is an error."""
    folder = _with_dense_layer(tiny, tmp_path)
    options = DenseOptions(model=str(folder), device="cpu")

    assert resolve_dense(options).provider == "sentence-transformers"
    with pytest.raises(ConfigError, match=r'has Dense, .* Set .*provider = "sentence-transformers"'):
        LocalFactory().describe(options)
    facts, opened = (
        SentenceTransformersFactory().describe(options),
        SentenceTransformersFactory().open(options),
    )
    assert facts.dim == opened.dim == 5
    assert opened.embed(TEXTS).shape == (4, 5)
    assert opened.embed([]).shape == (0, 5)


def _with_dense_layer(tiny: str, tmp_path: Path) -> Path:
    from sentence_transformers.models import Dense

    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    (folder / "modules.json").write_text(json.dumps(modules("Transformer", "Pooling", "Dense")))
    layer = Dense(32, 5)
    (folder / "2_Dense").mkdir()
    layer.save(str(folder / "2_Dense"))
    return folder


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "model.safetensors"])
def test_a_folder_without_a_required_file_is_rejected(tiny: str, tmp_path: Path, name: str) -> None:
    """In one line with the file and what to do."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    (folder / name).unlink()

    with pytest.raises(ConfigError, match=f"has no {name}. Set a complete model folder") as raised:
        resolve_dense(DenseOptions(model=str(folder)))
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1", weights()[:-1], b""])
def test_truncated_weights_are_rejected_before_loading(tiny: str, tmp_path: Path, content: bytes) -> None:
    """An unfinished download, or the pointer file of a clone without large files."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    (folder / "model.safetensors").write_bytes(content)

    with pytest.raises(ConfigError, match=r"model.safetensors is damaged \(it.*\). Download the model again"):
        resolve_dense(DenseOptions(model=str(folder)))


@pytest.mark.parametrize(
    ("file", "content"),
    [("modules.json", "{}"), ("modules.json", "["), ("1_Pooling/config.json", '{"pooling_mode": "new"}')],
)
def test_files_with_invalid_values_are_rejected(tiny: str, tmp_path: Path, file: str, content: str) -> None:
    """The values are not guessed."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    (folder / file).write_text(content)

    with pytest.raises(ConfigError, match=r"^embeddings\.dense\.model: "):
        read_layout(str(folder))


def test_positions_reserved_for_padding_are_not_counted(tmp_path: Path) -> None:
    """RoBERTa starts counting after the padding index."""
    assert read_layout(make_model(tmp_path / "bert", "bert")).max_tokens == 66
    assert read_layout(make_model(tmp_path / "mpnet", "mpnet")).max_tokens == 64
