"""A model's token limit is never higher than its network has positions for."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.embedders.model_layout import read_layout
from ingest_assets.embedders.sparse import open_sparse, read_sparse_model
from ingest_assets.embedders.torch import LocalFactory, SentenceTransformersFactory
from ingest_assets.settings.embeddings import DenseOptions, SparseOptions
from ingest_tests.embedders.tiny_models import make_model
from ingest_tests.embedders.tiny_splade import write_model

LONG = "the swarm in may " * 100
POSITIONS = {"bert": 66, "distilbert": 66, "electra": 66, "mpnet": 64, "roberta": 65, "xlm-roberta": 65}


def _change(folder: str, file: str, **values: object) -> None:
    path = Path(folder) / file
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**content, **values}))


@pytest.mark.parametrize("file", ["sentence_bert_config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("kind", POSITIONS)
def test_a_limit_above_the_networks_positions_is_lowered(tmp_path: Path, kind: str, file: str):
    """Longer texts are cut at the last position; one token more would be an IndexError."""
    model = make_model(tmp_path / "model", kind)
    _change(model, file, max_seq_length=512, model_max_length=512)
    options = DenseOptions(model=model, device="cpu")

    ours, library = LocalFactory().open(options), SentenceTransformersFactory().open(options)

    assert read_layout(model).max_tokens == POSITIONS[kind]
    np.testing.assert_allclose(ours.embed([LONG]), library.embed([LONG]), atol=2e-5)


def test_a_limit_below_the_networks_positions_is_kept(tmp_path: Path):
    """The model was not trained on longer texts."""
    model = make_model(tmp_path / "model")
    _change(model, "sentence_bert_config.json", max_seq_length=20)

    assert read_layout(model).max_tokens == 20


def test_relative_positions_are_no_limit(tiny: str, tmp_path: Path):
    """T5 has no last position; the number in its files is a length from its training."""
    folder = shutil.copytree(tiny, tmp_path / "model")
    _change(str(folder), "config.json", model_type="t5", max_position_embeddings=None, n_positions=66)
    _change(str(folder), "sentence_bert_config.json", max_seq_length=512)

    assert read_layout(str(folder)).max_tokens == 512


@pytest.mark.parametrize("pad_id", [0, 1, 3])
def test_roberta_reserves_its_first_positions_for_padding(tmp_path: Path, pad_id: int):
    """One more than the padding index."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    folder = write_model(tmp_path / "model")
    content = json.loads((folder / "config.json").read_text())
    shape = {name: content[name] for name in ("vocab_size", "hidden_size", "intermediate_size")}
    layers = {"num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 30}
    config = RobertaConfig(**shape, **layers, pad_token_id=pad_id)
    RobertaForMaskedLM(config).eval().save_pretrained(folder)

    assert read_sparse_model(str(folder)).max_tokens == 30 - pad_id - 1
    (indices, _), _ = open_sparse(SparseOptions(model=str(folder), device="cpu")).embed(["hive " * 99, "bee"])
    assert len(indices)
