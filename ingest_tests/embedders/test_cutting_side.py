"""Long texts are cut at the end that the tokenizer's files specify, in every provider."""

import json
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.embedders.model_layout import read_layout, usage_of
from ingest_assets.embedders.providers import describe_dense
from ingest_assets.embedders.torch import Encoder, LocalFactory, SentenceTransformersFactory, read_tokenizer
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.embedders.tiny_models import make_model

LONG = "the bridge . " * 30 + "onion soup in may"


def _model(folder: Path, side_in: str) -> str:
    model = make_model(folder, sentence_bert_config={"max_seq_length": 16})
    path = folder / side_in
    content = json.loads(path.read_text())
    if side_in == "tokenizer.json":
        direction = {"direction": "Left", "max_length": 16, "strategy": "LongestFirst", "stride": 0}
        content["truncation"] = direction
    else:
        content["truncation_side"] = "left"
    path.write_text(json.dumps(content))
    return model


@pytest.mark.parametrize("side_in", ["tokenizer_config.json", "tokenizer.json"])
def test_a_model_that_truncates_on_the_left_gets_the_end_of_a_text(tmp_path: Path, side_in: str):
    """As in sentence-transformers; the other end would give another vector."""
    options = DenseOptions(model=_model(tmp_path / "model", side_in), device="cpu")
    layout = read_layout(options.model)
    by_file = Encoder(read_tokenizer(layout), layout, usage_of(layout, options))

    ours, library = LocalFactory().open(options), SentenceTransformersFactory().open(options)

    np.testing.assert_allclose(ours.embed([LONG]), library.embed([LONG]), atol=2e-5)
    (ids,) = by_file.encode([LONG], "passage")
    assert len(ids) == 16
    assert ids == read_tokenizer(layout).encode(" ".join(LONG.split()[-14:])).ids
    assert describe_dense(options).identity["truncation_side"] == "left"


def test_the_default_side_is_not_in_a_models_identity(tiny: str):
    """Existing vectors stay valid."""
    assert "truncation_side" not in describe_dense(DenseOptions(model=tiny)).identity
