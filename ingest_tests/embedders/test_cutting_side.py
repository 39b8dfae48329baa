"""Which end of a text that is too long is left out: as the model's tokenizer says, in every provider."""

import json
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.embedders.model_recipe import read_recipe, usage_of
from ingest_assets.embedders.providers import describe_dense
from ingest_assets.embedders.torch import Encoder, LocalKind, SentencesKind, read_tokenizer
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
def test_a_model_that_reads_the_end_of_a_text_is_given_its_end(tmp_path: Path, side_in: str):
    """As sentence-transformers does; the other end would be another vector."""
    options = DenseOptions(model=_model(tmp_path / "model", side_in), device="cpu")
    recipe = read_recipe(options.model)
    by_file = Encoder(read_tokenizer(recipe), recipe, usage_of(recipe, options))

    ours, library = LocalKind().open(options), SentencesKind().open(options)

    np.testing.assert_allclose(ours.embed([LONG]), library.embed([LONG]), atol=2e-5)
    (ids,) = by_file.encode([LONG], "passage")
    assert len(ids) == 16
    assert ids == read_tokenizer(recipe).encode(" ".join(LONG.split()[-14:])).ids
    assert describe_dense(options).identity["truncation_side"] == "left"


def test_the_usual_side_is_no_part_of_a_models_identity(tiny: str):
    """Vectors that were made before stay what they are."""
    assert "truncation_side" not in describe_dense(DenseOptions(model=tiny)).identity
