"""The chunker follows whoever makes the vectors."""

from pathlib import Path

import pytest

from ingest_assets.app.home import open_home
from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_files import load_tokenizer
from ingest_assets.embedders.providers import dense_kind
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


def test_an_endpoint_whose_tokenizer_nobody_knows_is_counted_for_with_the_packaged_one(tmp_path: Path):
    """Planning asks no endpoint; a folder that happens to have the model's name is no model of it."""
    (tmp_path / "some-model").mkdir()

    stage = _chunks(tmp_path, ENDPOINT.format(more=""))

    assert stage.tokenizer == PACKAGED_MODEL
    assert stage.limit is None
    assert open_home(tmp_path).stages["dense"].footer()["model_id"] == "some-model@127.0.0.1:9"


def test_chunks_larger_than_what_an_endpoint_reads_are_refused_with_both_numbers(tmp_path: Path):
    """The settings say what it reads."""
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


def test_a_packages_own_tokenizer_counts_also_where_no_model_is_named(tmp_path: Path, monkeypatch):
    """Such a provider needs no model of ours."""
    tokenizer = make_model(tmp_path / "tokenizer")
    source = PACKAGE.format(tokenizer=tokenizer)
    monkeypatch.syspath_prepend(str(offer_providers(tmp_path / "site", "far", source, {"far": "Kind"})))

    stage = _chunks(tmp_path, '[embeddings.dense]\nprovider = "far"\n')

    assert (stage.tokenizer, stage.limit) == (tokenizer, 64)
    dense_kind.cache_clear()


@pytest.mark.parametrize("prefix", ["", "passage: ", "Represent this passage so that it is found: "])
def test_what_the_embedder_puts_before_a_chunk_takes_room_from_it(prefix: str, tmp_path: Path):
    """Else the end of every full chunk would be in no vector."""
    stage = _chunks(tmp_path, f'[embeddings.dense]\npassage_prefix = "{prefix}"\n')

    full = "cable " * stage.cut.max_tokens
    assert len(load_tokenizer(PACKAGED_MODEL)(prefix + full)["input_ids"]) == 256


def test_a_prefix_that_leaves_no_room_is_refused_with_both_numbers(tmp_path: Path):
    """Before anything is cut."""
    settings = f'[embeddings.dense]\npassage_prefix = "{"cable " * 200}"\n'

    with pytest.raises(ConfigError, match=r"^embeddings.dense.passage_prefix: its 200 tokens .* the 256 "):
        _chunks(tmp_path, settings)
