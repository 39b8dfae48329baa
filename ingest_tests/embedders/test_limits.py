"""How much a model reads: never more than its network has positions for, whatever its other files say."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.embedders.model_recipe import read_recipe
from ingest_assets.embedders.sparse import open_sparse, sparse_model
from ingest_assets.embedders.torch import LocalKind, SentencesKind
from ingest_assets.settings.embeddings import DenseOptions, SparseOptions
from ingest_tests.embedders.tiny_models import make_model
from ingest_tests.embedders.tiny_splade import write_model

LONG = "the swarm in may " * 100
POSITIONS = {"bert": 66, "distilbert": 66, "electra": 66, "mpnet": 64, "roberta": 65, "xlm-roberta": 65}


def _say(folder: str, file: str, **said: object) -> None:
    path = Path(folder) / file
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**content, **said}))


@pytest.mark.parametrize("told_by", ["sentence_bert_config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("kind", POSITIONS)
def test_a_limit_past_the_networks_positions_is_not_believed(tmp_path: Path, kind: str, told_by: str):
    """A long chunk is cut there, and read to the last position; one token more would be an IndexError."""
    model = make_model(tmp_path / "model", kind)
    _say(model, told_by, max_seq_length=512, model_max_length=512)
    options = DenseOptions(model=model, device="cpu")

    ours, library = LocalKind().open(options), SentencesKind().open(options)

    assert read_recipe(model).max_tokens == POSITIONS[kind]
    np.testing.assert_allclose(ours.embed([LONG]), library.embed([LONG]), atol=2e-5)


def test_a_limit_below_the_networks_positions_is_kept(tmp_path: Path):
    """It was trained no further."""
    model = make_model(tmp_path / "model")
    _say(model, "sentence_bert_config.json", max_seq_length=20)

    assert read_recipe(model).max_tokens == 20


def test_positions_that_are_counted_from_each_other_limit_nothing(tiny: str, tmp_path: Path):
    """T5 has no last one; what its file calls so is a length from its training."""
    folder = shutil.copytree(tiny, tmp_path / "model")
    _say(str(folder), "config.json", model_type="t5", max_position_embeddings=None, n_positions=66)
    _say(str(folder), "sentence_bert_config.json", max_seq_length=512)

    assert read_recipe(str(folder)).max_tokens == 512


@pytest.mark.parametrize("pad_id", [0, 1, 3])
def test_the_first_positions_of_a_roberta_are_taken_by_its_padding(tmp_path: Path, pad_id: int):
    """As many as the padding's number, and one."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    folder = write_model(tmp_path / "model")
    said = json.loads((folder / "config.json").read_text())
    shape = {name: said[name] for name in ("vocab_size", "hidden_size", "intermediate_size")}
    layers = {"num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 30}
    config = RobertaConfig(**shape, **layers, pad_token_id=pad_id)
    RobertaForMaskedLM(config).eval().save_pretrained(folder)

    assert sparse_model(str(folder)).max_tokens == 30 - pad_id - 1
    (indices, _), _ = open_sparse(SparseOptions(model=str(folder), device="cpu")).embed(["hive " * 99, "bee"])
    assert len(indices)
