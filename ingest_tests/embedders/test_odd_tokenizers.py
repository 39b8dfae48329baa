"""Tokenizers that make nothing of a text, or more than the model knows: told in one line, for that text."""

from pathlib import Path

import numpy as np
import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.model_recipe import read_recipe
from ingest_assets.embedders.onnx_export import export_of
from ingest_assets.embedders.providers import close_dense, open_dense
from ingest_assets.embedders.sparse import open_sparse
from ingest_assets.settings.embeddings import DenseOptions, SparseOptions
from ingest_tests.embedders.conftest import export_here
from ingest_tests.embedders.odd_tokenizers import put_bare_tokenizer, put_larger_tokenizer
from ingest_tests.embedders.tiny_models import make_model
from ingest_tests.embedders.tiny_splade import write_model

PROVIDERS = ["local", "onnx", "sentence-transformers"]
UNKNOWN = "\U0001f41d \u200b"


def _options(tmp_path: Path, provider: str, model: str) -> DenseOptions:
    options = DenseOptions(
        provider=provider, model=model, device="cpu", exports_path=str(tmp_path / "exports")
    )
    if provider == "onnx" and not export_of(read_recipe(model), options.exports_path).is_whole():
        export_here(model, Path(options.exports_path))
    return options


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_text_of_no_token_is_named_and_its_neighbours_are_embedded(tmp_path: Path, provider: str):
    """A network has nothing to read there; the library's own words would be about shapes."""
    model = put_bare_tokenizer(make_model(tmp_path / "model"))
    embedder = open_dense(_options(tmp_path, provider, model))

    for text in ("", UNKNOWN):
        with pytest.raises(ItemError, match="makes no token of a text") as raised:
            embedder.embed(["the hive", text, "soup"])
        assert (raised.value.code, raised.value.detail["index"]) == ("E_TEXT_WITHOUT_TOKENS", 1)

    assert np.linalg.norm(embedder.embed(["the hive", "soup"]), axis=1).min() > 0
    close_dense()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_token_that_the_network_does_not_know_is_told_with_its_text(tmp_path: Path, provider: str):
    """A tokenizer of another model, perhaps: texts without that token have their vectors."""
    model = put_larger_tokenizer(make_model(tmp_path / "model"))
    embedder = open_dense(_options(tmp_path, provider, model))

    with pytest.raises(ItemError, match=r"token 31, and the model knows 31 of them") as raised:
        embedder.embed(["the hive", "a zeppelin", "soup"])

    assert (raised.value.code, raised.value.detail["index"]) == ("E_TOKEN_UNKNOWN", 1)
    assert np.linalg.norm(embedder.embed(["the hive", "soup"]), axis=1).min() > 0
    close_dense()


def test_a_sparse_model_sees_nothing_in_a_text_of_no_token(tmp_path: Path):
    """Alone or among others."""
    model = put_bare_tokenizer(write_model(tmp_path / "model"))
    embedder = open_sparse(SparseOptions(model=model, device="cpu"))

    (alone,) = embedder.embed([UNKNOWN])
    among = embedder.embed(["hive", UNKNOWN, "soup", ""])

    assert len(alone[0]) == 0
    assert [len(indices) > 0 for indices, _ in among] == [True, False, True, False]


def test_a_sparse_model_does_not_know_a_token(tmp_path: Path):
    """As with dense ones."""
    model = put_larger_tokenizer(write_model(tmp_path / "model"))
    embedder = open_sparse(SparseOptions(model=model, device="cpu"))

    with pytest.raises(ItemError, match=r"token \d+, and the model knows") as raised:
        embedder.embed(["hive", "a zeppelin"])

    assert raised.value.detail["index"] == 1


def test_a_long_text_and_a_missing_pooler_are_not_told_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """Both are looked after here: what is cut is counted, and no vector is made of a pooler."""
    model = make_model(tmp_path / "model", "mpnet")
    capfd.readouterr()
    embedder = open_dense(_options(tmp_path, "sentence-transformers", model))

    embedder.embed(["the swarm " * 500])

    assert capfd.readouterr() == ("", "")
    close_dense()
