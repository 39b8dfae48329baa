"""The chunker follows whoever makes the vectors."""

from pathlib import Path

import pytest

from ingest_assets.defs.home import open_home
from ingest_assets.model.embedding import PACKAGED_MODEL
from ingest_assets.model.errors import ConfigError
from ingest_assets.stages.chunks import ChunksStage

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
