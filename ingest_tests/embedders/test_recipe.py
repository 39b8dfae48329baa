"""How a model wants to be used is read from its own files, and done as sentence-transformers does it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_recipe import read_recipe, usage_of
from ingest_assets.embedders.providers import resolve_dense
from ingest_assets.embedders.torch import LocalKind, SentencesKind
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.embedders.tiny_models import make_model, modules
from ingest_tests.weights import weights

TEXTS = ["the bridge was found", "a swarm in may", "rust , rust", "x b c d e f g h i x b c d e f g"]


def test_the_files_say_pooling_prompts_limit_and_scaling(tiny: str) -> None:
    """Settings win over them."""
    recipe = read_recipe(tiny)
    own = usage_of(recipe, DenseOptions(normalize=False))
    wished = usage_of(recipe, DenseOptions(pooling="max", max_tokens=9, dim=4, query_prefix=""))

    assert (own.pooling, own.max_tokens, own.dim, own.normalized) == (("cls",), 16, 32, True)
    assert (own.query_prefix, own.passage_prefix) == ("swarm: ", "hive: ")
    assert (wished.pooling, wished.max_tokens, wished.dim, wished.query_prefix) == (("max",), 9, 4, "")


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

    recipe = read_recipe(str(folder))

    assert (recipe.query_prefix, recipe.passage_prefix) == expected


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
def test_every_pooling_is_sentence_transformers_own(
    tiny: str, tmp_path: Path, pooling: dict[str, object]
) -> None:
    """Prompts and limits, too: both ways give the same vectors for passages and for queries."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32} | pooling))
    (folder / "modules.json").write_text(json.dumps(modules("Transformer", "Pooling")))
    options = DenseOptions(model=str(folder), device="cpu")

    ours, library = LocalKind().open(options), SentencesKind().open(options)

    assert ours.dim == library.dim == 32 * len([mode for mode in pooling.values() if mode is True] or [1])
    for kind in ("passage", "query"):
        np.testing.assert_allclose(ours.embed(TEXTS, kind), library.embed(TEXTS, kind), atol=2e-5)


def test_a_folder_with_further_layers_goes_to_the_library(tiny: str, tmp_path: Path) -> None:
    """Auto must not leave a layer out; who insists is told."""
    folder = _with_dense_layer(tiny, tmp_path)
    options = DenseOptions(model=str(folder), device="cpu")

    assert resolve_dense(options).provider == "sentence-transformers"
    with pytest.raises(ConfigError, match=r'has Dense, .* set .*provider = "sentence-transformers"'):
        LocalKind().describe(options)
    facts, opened = SentencesKind().describe(options), SentencesKind().open(options)
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
def test_a_folder_that_lacks_a_file_is_refused_by_name(tiny: str, tmp_path: Path, name: str) -> None:
    """One line: which file, and what to do."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    (folder / name).unlink()

    with pytest.raises(ConfigError, match=f"has no {name}; give a complete model folder") as raised:
        resolve_dense(DenseOptions(model=str(folder)))
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1", weights()[:-1], b""])
def test_weights_that_are_cut_short_are_refused_before_anything_is_loaded(
    tiny: str, tmp_path: Path, content: bytes
) -> None:
    """An unfinished download, or the pointer that a clone without large files has."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    (folder / "model.safetensors").write_bytes(content)

    with pytest.raises(ConfigError, match=r"model.safetensors is damaged \(it.*\); get the model again"):
        resolve_dense(DenseOptions(model=str(folder)))


@pytest.mark.parametrize(
    ("file", "content"),
    [("modules.json", "{}"), ("modules.json", "["), ("1_Pooling/config.json", '{"pooling_mode": "new"}')],
)
def test_files_that_say_nonsense_are_refused(tiny: str, tmp_path: Path, file: str, content: str) -> None:
    """Rather than to guess."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    (folder / file).write_text(content)

    with pytest.raises(ConfigError, match=r"^embeddings\.dense\.model: "):
        read_recipe(str(folder))


def test_positions_that_padding_takes_are_not_read(tmp_path: Path) -> None:
    """RoBERTa's kind begins to count behind the padding index."""
    assert read_recipe(make_model(tmp_path / "bert", "bert")).max_tokens == 66
    assert read_recipe(make_model(tmp_path / "mpnet", "mpnet")).max_tokens == 64
