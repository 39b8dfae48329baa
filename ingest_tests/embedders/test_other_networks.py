"""Models that only sentence-transformers runs: static word vectors and encoder-decoders."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.providers import choose_provider, describe_dense, open_dense
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.embedders.tiny_models import WORDS, make_model

TEXTS = ["The bridge was found in May.", "onion soup", "A swarm in the hive, a swarm in May."]


def _static(folder: Path) -> Path:
    """Write a folder like model2vec, whose `config.json` is not one of transformers."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: number for number, word in enumerate(["[UNK]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = np.random.default_rng(3).normal(size=(len(words), 16)).astype(np.float32)
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=vectors)]).save(str(folder))
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    return folder


def _encoder_decoder(folder: Path) -> Path:
    from transformers import T5Config, T5Model

    make_model(folder, sentence_bert_config={"max_seq_length": 64})
    (folder / "model.safetensors").unlink()
    small: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    T5Model(T5Config(vocab_size=64, pad_token_id=0, decoder_start_token_id=0, **small)).save_pretrained(
        folder
    )
    return folder


@pytest.fixture(scope="module", params=[_static, _encoder_decoder])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One folder of each type."""
    path: Path = request.param(tmp_path_factory.mktemp("models") / "model")
    return str(path)


def test_auto_selects_sentence_transformers_for_models_only_it_runs(folder: str) -> None:
    """Without a setting; the vectors are those of the library."""
    from sentence_transformers import SentenceTransformer

    options = DenseOptions(model=folder)

    vectors = open_dense(options).embed(TEXTS)

    assert choose_provider(options) == "sentence-transformers"
    assert describe_dense(options).dim == vectors.shape[1]
    assert np.abs(vectors - SentenceTransformer(folder, device="cpu").encode(TEXTS)).max() < 1e-5


def test_a_provider_that_cannot_run_a_network_names_the_one_that_can(folder: str) -> None:
    """Before any document is read."""
    with pytest.raises(ConfigError, match=r'Set embeddings\.dense\.provider = "sentence-transformers"'):
        describe_dense(DenseOptions(model=folder, provider="local"))
