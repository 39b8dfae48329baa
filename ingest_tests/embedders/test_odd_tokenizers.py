"""Texts without tokens, and tokens outside the vocabulary: one error that names the text."""

from pathlib import Path

import numpy as np
import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.model_layout import read_layout
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
    if provider == "onnx" and not export_of(read_layout(model), options.exports_path).is_complete():
        export_here(model, Path(options.exports_path))
    return options


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_text_without_tokens_is_named_and_the_others_are_embedded(tmp_path: Path, provider: str):
    """The library's own error would be about shapes."""
    model = put_bare_tokenizer(make_model(tmp_path / "model"))
    embedder = open_dense(_options(tmp_path, provider, model))

    for text in ("", UNKNOWN):
        with pytest.raises(ItemError, match="finds no token in a text") as raised:
            embedder.embed(["the hive", text, "soup"])
        assert (raised.value.code, raised.value.detail["index"]) == ("E_TEXT_WITHOUT_TOKENS", 1)

    assert np.linalg.norm(embedder.embed(["the hive", "soup"]), axis=1).min() > 0
    close_dense()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_token_outside_the_vocabulary_is_an_error_of_its_text(tmp_path: Path, provider: str):
    """As with the tokenizer of another model. Texts without that token get their vectors."""
    model = put_larger_tokenizer(make_model(tmp_path / "model"))
    embedder = open_dense(_options(tmp_path, provider, model))

    with pytest.raises(ItemError, match=r"token 31, but the model knows only 0 to 30") as raised:
        embedder.embed(["the hive", "a zeppelin", "soup"])

    assert (raised.value.code, raised.value.detail["index"]) == ("E_TOKEN_UNKNOWN", 1)
    assert np.linalg.norm(embedder.embed(["the hive", "soup"]), axis=1).min() > 0
    close_dense()


def test_a_text_without_tokens_has_an_empty_sparse_vector(tmp_path: Path):
    """Alone or with other texts."""
    model = put_bare_tokenizer(write_model(tmp_path / "model"))
    embedder = open_sparse(SparseOptions(model=model, device="cpu"))

    (alone,) = embedder.embed([UNKNOWN])
    among = embedder.embed(["hive", UNKNOWN, "soup", ""])

    assert len(alone[0]) == 0
    assert [len(indices) > 0 for indices, _ in among] == [True, False, True, False]


def test_a_sparse_model_rejects_a_token_outside_its_vocabulary(tmp_path: Path):
    """As dense models do."""
    model = put_larger_tokenizer(write_model(tmp_path / "model"))
    embedder = open_sparse(SparseOptions(model=model, device="cpu"))

    with pytest.raises(ItemError, match=r"token \d+, but the model knows") as raised:
        embedder.embed(["hive", "a zeppelin"])

    assert raised.value.detail["index"] == 1


def test_the_library_prints_no_warning_for_a_long_text_or_a_missing_pooler(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """Cut texts are counted here, and the pooler is not used."""
    model = make_model(tmp_path / "model", "mpnet")
    capfd.readouterr()
    embedder = open_dense(_options(tmp_path, "sentence-transformers", model))

    embedder.embed(["the swarm " * 500])

    assert capfd.readouterr() == ("", "")
    close_dense()
