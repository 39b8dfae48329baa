"""Chunk sizes follow the tokenizer and the token limit of the embedding provider."""

from pathlib import Path

import pytest

from ingest_assets.app.home import open_home
from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_files import load_tokenizer
from ingest_assets.embedders.providers import dense_factory
from ingest_assets.settings.embeddings import PACKAGED_MODEL
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_tests.embedders.tiny_models import make_model
from ingest_tests.packages import offer_providers

ENDPOINT = """
[embeddings.dense]
provider = "openai"
model = "some-model"
dim = 8
{more}
[embeddings.dense.remote]
url = "http://127.0.0.1:9/v1/embeddings"
"""


def _chunks(home: Path, settings: str) -> ChunksStage:
    (home / "ingest.toml").write_text(settings)
    stage = open_home(home).stages["chunks"]
    assert isinstance(stage, ChunksStage)
    return stage


def test_the_packaged_tokenizer_counts_for_an_endpoint(tmp_path: Path):
    """Planning sends no request, and ignores a folder that happens to have the model's name."""
    (tmp_path / "some-model").mkdir()

    stage = _chunks(tmp_path, ENDPOINT.format(more=""))

    assert stage.tokenizer == PACKAGED_MODEL
    assert stage.limit is None
    assert open_home(tmp_path).stages["dense"].footer()["model_id"] == "some-model@127.0.0.1:9"


def test_chunks_above_the_endpoints_limit_are_rejected_with_both_numbers(tmp_path: Path):
    """The limit comes from the settings."""
    settings = ENDPOINT.format(more="max_tokens = 128") + "[chunks]\nmax_tokens = 256\n"

    with pytest.raises(ConfigError, match=r"256.*128"):
        _chunks(tmp_path, settings)


PACKAGE = """
from ingest_assets.settings.embeddings import DenseFacts

class Kind:
    def describe(self, options):
        return DenseFacts("far", "far@1", 2, 64, {tokenizer!r}, True, {{}})
    def open(self, options):
        raise NotImplementedError
"""


def test_the_tokenizer_of_a_provider_package_is_used_without_a_model_name(tmp_path: Path, monkeypatch):
    """Such a provider needs no packaged model."""
    tokenizer = make_model(tmp_path / "tokenizer")
    source = PACKAGE.format(tokenizer=tokenizer)
    monkeypatch.syspath_prepend(str(offer_providers(tmp_path / "site", "far", source, {"far": "Kind"})))

    stage = _chunks(tmp_path, '[embeddings.dense]\nprovider = "far"\n')

    assert (stage.tokenizer, stage.limit) == (tokenizer, 64)
    dense_factory.cache_clear()


@pytest.mark.parametrize("prefix", ["", "passage: ", "Represent this passage so that it is found: "])
def test_the_passage_prefix_counts_against_the_chunk_size(prefix: str, tmp_path: Path):
    """Otherwise the end of every full chunk would be cut off before embedding."""
    stage = _chunks(tmp_path, f'[embeddings.dense]\npassage_prefix = "{prefix}"\n')

    full = "cable " * stage.cut.max_tokens
    assert len(load_tokenizer(PACKAGED_MODEL)(prefix + full)["input_ids"]) == 256


def test_a_prefix_that_leaves_no_room_is_rejected_with_both_numbers(tmp_path: Path):
    """Before any document is chunked."""
    settings = f'[embeddings.dense]\npassage_prefix = "{"cable " * 200}"\n'

    with pytest.raises(ConfigError, match=r"^embeddings.dense.passage_prefix: its 200 tokens .* the 256 "):
        _chunks(tmp_path, settings)
